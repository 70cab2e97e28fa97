package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold"
)

// keepObservations is how long an observation is kept: long enough for a cron
// job that runs once a week.
const keepObservations = 8 * 24 * time.Hour

// maxObservations bounds the file.
const maxObservations = 10_000

// seenFile is seen.json, which keeps the observations of short-lived processes.
// With it, a cron job that tries once a minute without waiting can take over a
// dead holder's lock, because an earlier run has seen the same version at least
// one lease ago. An observation counts until this machine reboots, and only on
// the clock that it was made with (a container may have another); any other
// observation in the file counts from the time when it is read.
type seenFile struct {
	path  string
	store string
	keys  map[leasehold.Key]bool
	now   func() time.Time
	known bool // the file has an observation of one of the keys
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

// newSeenFile returns the file for a store. nil: there is no place for it.
func (a *app) newSeenFile(s *store) *seenFile {
	dir, err := stateDir(a.Env)
	if err != nil {
		return nil
	}
	return &seenFile{path: filepath.Join(dir, "seen.json"), store: s.id(), keys: map[leasehold.Key]bool{}, now: a.Now, say: a.say}
}

// loadSeen gives locks the earlier observations of keys. If there is no place for
// the file it returns nil: then a dead holder's lock is only taken over later.
func (a *app) loadSeen(s *store, locks *leasehold.Client, keys []leasehold.Key) *seenFile {
	f := a.newSeenFile(s)
	if f == nil {
		if a.flags.verbose {
			a.say.note("observations are not kept, as neither HOME nor XDG_STATE_HOME is set: a dead holder blocks who tries, but does not wait for one lease")
		}
		return nil
	}
	for _, k := range keys {
		f.keys[k] = true
	}
	for _, e := range f.read().Seen {
		if f.matches(e) {
			f.known = true
			_ = locks.ImportObservations(0, e.Observation) // a damaged observation is ignored
		}
	}
	return f
}

// matches reports whether an entry is about one of the keys in this store.
func (f *seenFile) matches(e seenEntry) bool {
	return e.Store == f.store && f.keys[e.Observation.Key]
}

// save writes what locks has observed about the keys.
func (f *seenFile) save(locks *leasehold.Client) {
	var now []seenEntry
	for _, o := range locks.Observations() {
		if e := (seenEntry{f.store, o}); f.matches(e) {
			now = append(now, e)
		}
	}
	if len(now) == 0 && !f.known {
		return
	}
	if err := f.update(now); err != nil {
		what := "a key"
		for k := range f.keys {
			if len(f.keys) == 1 {
				what = printable(k.String())
			}
		}
		f.say.note("observations could not be saved, so a dead holder may block %s for longer: %v", what, err)
	}
}

// update replaces the entries about the keys, and drops the oldest.
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
	oldest := f.now().Add(-keepObservations)
	content.Seen = slices.DeleteFunc(content.Seen, func(e seenEntry) bool {
		return f.matches(e) || e.Observation.Since.Before(oldest)
	})
	content.Seen = append(content.Seen, entries...)
	if extra := len(content.Seen) - maxObservations; extra > 0 {
		content.Seen = slices.Delete(content.Seen, 0, extra)
	}
	b, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return writeFile(f.path, append(b, '\n'), 0o600)
}

// read returns the file's content. A missing or damaged file counts as empty.
func (f *seenFile) read() seenJSON {
	var content seenJSON
	b, err := os.ReadFile(f.path)
	if err != nil || json.Unmarshal(b, &content) != nil {
		return seenJSON{}
	}
	return content
}

// writeFile replaces a file as a whole or not at all. It gets that mode.
func writeFile(path string, b []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
