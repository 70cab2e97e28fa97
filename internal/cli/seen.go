package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold"
)

// forgetAfter is how long an observation is kept: longer than the pauses of a
// cron line that is worth a memory.
const forgetAfter = 8 * 24 * time.Hour

// mostSeen bounds the file.
const mostSeen = 10_000

// seenFile is seen.json, what short-lived processes have observed: a line of
// cron that asks once a minute and never waits takes over a dead holder's lock
// because an earlier run has seen the same version, a lease ago or more. It
// holds until this machine boots again, and by the clock that saw it: a container
// may have another. Other observations in the file count from when it is read.
type seenFile struct {
	path  string
	store string
	keys  []leasehold.Key
	now   func() time.Time
	had   bool // the file knows one of the keys
	say   *messages
}

// seenJSON is the file's content.
type seenJSON struct {
	Seen []seenEntry `json:"seen"`
}

type seenEntry struct {
	Store       string                `json:"store"`
	Observation leasehold.Observation `json:"observation"`
}

// loadSeen gives locks what was observed of keys before. That nothing can be
// remembered keeps nobody from trying: the lock is only taken over later.
func (a *app) loadSeen(s *store, locks *leasehold.Client, keys []leasehold.Key) *seenFile {
	dir, err := stateDir(a.Env)
	if err != nil {
		return nil
	}
	f := &seenFile{path: filepath.Join(dir, "seen.json"), store: s.id(), keys: keys, now: a.Now, say: a.say}
	for _, e := range f.read().Seen {
		if f.isOf(e) {
			f.had = true
			_ = locks.ImportObservations(0, e.Observation) // what is damaged is as good as not seen
		}
	}
	return f
}

// isOf reports whether an entry is of one of the keys.
func (f *seenFile) isOf(e seenEntry) bool {
	return e.Store == f.store && slices.Contains(f.keys, e.Observation.Key)
}

// save keeps what locks has observed of the keys by now.
func (f *seenFile) save(locks *leasehold.Client) {
	var now []seenEntry
	for _, o := range locks.Observations() {
		if e := (seenEntry{f.store, o}); f.isOf(e) {
			now = append(now, e)
		}
	}
	if len(now) == 0 && !f.had {
		return
	}
	if err := f.update(now); err != nil {
		f.say.note("what was observed could not be kept, so a dead holder may block %s for longer: %v", printable(f.keys[0].String()), err)
	}
}

// update replaces what the file has of the keys.
func (f *seenFile) update(entries []seenEntry) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	unlock, err := lockFile(f.path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	content := f.read()
	oldest := f.now().Add(-forgetAfter)
	content.Seen = slices.DeleteFunc(content.Seen, func(e seenEntry) bool {
		return f.isOf(e) || e.Observation.Since.Before(oldest)
	})
	content.Seen = append(content.Seen, entries...)
	if extra := len(content.Seen) - mostSeen; extra > 0 {
		content.Seen = slices.Delete(content.Seen, 0, extra)
	}
	b, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return writeFile(f.path, append(b, '\n'))
}

// read returns what the file has; a file that does not read is as good as none.
func (f *seenFile) read() seenJSON {
	var content seenJSON
	b, err := os.ReadFile(f.path)
	if err != nil || json.Unmarshal(b, &content) != nil {
		return seenJSON{}
	}
	return content
}

// writeFile replaces a file as a whole or not at all, readable by its owner alone.
func writeFile(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone if all went well
	if _, err := tmp.Write(b); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
