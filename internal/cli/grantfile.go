package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// maxGrantSize is in bytes: a longer file holds no grant.
const maxGrantSize = 1 << 20

// grantFile is where a grant is kept: a regular file, which is replaced as a whole, and
// only if it is missing, empty or holds a grant that has ended; or the standard streams.
type grantFile struct {
	path   string      // as the user named it, or standardStream
	file   string      // the regular file: path without symbolic links
	before []byte      // its content when it was opened
	absent bool        // it did not exist then
	grant  placedGrant // of a file that readGrant has read
}

// openGrantFile prepares to write a grant of key to path, and refuses a file
// that must not be overwritten. It is called before any request is sent.
func openGrantFile(path string, now time.Time, in store.Place, key leasehold.Key) (*grantFile, error) {
	g := &grantFile{path: path}
	if path == standardStream {
		return g, nil
	}
	var err error
	if g.file, err = regularFile(path); err != nil {
		return nil, err
	}
	if g.before, err = readLimited(g.file); errors.Is(err, fs.ErrNotExist) {
		g.absent = true
	} else if err != nil {
		return nil, unusable(path, err)
	}
	if err := g.mayBeReplaced(now, in, key); err != nil {
		return nil, err
	}
	return g, g.checkWritable()
}

// readGrantFile reads the grant to renew or to release, and what replaces or removes it
// there. It is called before any request is sent.
func readGrantFile(path string, stdin io.Reader) (*grantFile, error) {
	g, from := &grantFile{path: path}, path
	var err error
	if path == standardStream {
		from = "standard input"
		g.before, err = io.ReadAll(io.LimitReader(stdin, maxGrantSize))
	} else if g.file, err = regularFile(path); err != nil {
		return nil, err
	} else {
		g.before, err = readLimited(g.file)
	}
	if err != nil {
		return nil, misuse.Errorf("cannot read the grant that leasehold acquire wrote: %s: %v", from, failure.WithoutPath(err))
	}
	var ok bool
	if g.grant, ok = parseGrant(g.before); !ok {
		return nil, misuse.Errorf("%s holds no grant as leasehold acquire writes it", from)
	}
	return g, nil
}

// regularFile returns the name without symbolic links of what path names, and refuses
// what is there and could not be read back, replaced and removed. It need not be there.
func regularFile(path string) (string, error) {
	file, err := plainfile.Named(path)
	if err != nil {
		return "", unusable(path, err)
	}
	info, err := os.Lstat(file)
	switch {
	case err == nil && info.IsDir():
		return "", misuse.Errorf("--grant %s is a directory: name a file in it", path)
	case plainfile.IsStream(file) || err == nil && !info.Mode().IsRegular():
		return "", misuse.Errorf("--grant %s is not a regular file: leave out --grant and redirect, "+
			"as in acquire KEY >FILE, renew <OLD >NEW or release <FILE", path)
	}
	return file, nil
}

func unusable(path string, err error) error {
	return misuse.Errorf("--grant %s: %v", path, failure.WithoutPath(err))
}

// mayBeReplaced returns an error if the file must not be replaced. A grant of the
// lock that is about to be acquired may be: once the lock is granted again, that
// grant has ended.
func (g *grantFile) mayBeReplaced(now time.Time, wanted store.Place, key leasehold.Key) error {
	if len(bytes.TrimSpace(g.before)) == 0 {
		return nil
	}
	in, ok := parseGrant(g.before)
	if !ok {
		return misuse.Errorf("--grant %s: the file holds no grant, and its content would be lost: name another file", g.path)
	}
	if in.Table == wanted.Table && in.at.File == wanted.File && in.Key == key {
		return nil
	}
	return g.refuseHeld(now, in)
}

// mayBeReplacedIn is mayBeReplaced for the store that the lock is in: a table of the
// same name in another one has another lock.
func (g *grantFile) mayBeReplacedIn(now time.Time, here grantPlace) error {
	in, ok := parseGrant(g.before)
	switch what := in.at.differs(here); {
	case !ok, what == "", what == madeAnew:
		return nil
	}
	return g.refuseHeld(now, in)
}

// refuseHeld returns an error if a grant may still be held.
func (g *grantFile) refuseHeld(now time.Time, in placedGrant) error {
	if end := leaseEnds(in); now.Before(end) {
		return misuse.Errorf("--grant %s: the file holds a grant of %s (token %d) that may be held until %s: "+
			"run leasehold release -f %[1]s first, or name another file",
			g.path, wording.Key(in.Key), in.Token, end.Local().Format(time.DateTime))
	}
	return nil
}

// leaseEnds is when the lease of a grant expires by this machine's clock:
// TrustedUntil plus the margin, which is a tenth of the lease.
func leaseEnds(g placedGrant) time.Time { return g.TrustedUntil.Add(g.Lease / 10) }

// checkWritable checks that a file can be created in the directory.
func (g *grantFile) checkWritable() error {
	if g.path == standardStream {
		return nil
	}
	tmp, err := os.CreateTemp(dirOf(g.file), temporary(g.file))
	if err != nil {
		return unusable(g.path, err)
	}
	_ = tmp.Close()
	return os.Remove(tmp.Name())
}

// write writes a grant. A file gets mode 0600 and is replaced as a whole or not at all;
// if another process has changed it in the meantime, it is left alone.
func (g *grantFile) write(stdout io.Writer, grant placedGrant) error {
	b, err := json.Marshal(grant)
	if err != nil {
		return err
	}
	b = []byte(visible.Text(string(b)) + "\n")
	if old, ok := parseGrant(g.before); ok && old.ID != grant.ID && old.Token >= grant.Token {
		return errors.New("it holds a grant from another table of the same name, which may still be held")
	}
	if g.path == standardStream {
		_, err = stdout.Write(b)
		return err
	}
	return g.replace(b)
}

func (g *grantFile) replace(b []byte) error {
	tmp, err := os.CreateTemp(dirOf(g.file), temporary(g.file)) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails after a rename, as it should
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if g.absent {
		err = plainfile.Place(tmp.Name(), g.file)
		switch {
		case errors.Is(err, fs.ErrExist):
			return errFileChanged
		case err == nil:
			syncDir(dirOf(g.file))
			return nil
		}
		// Not every file system has hard links.
		empty, err := os.OpenFile(g.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return errFileChanged
		}
		if err != nil {
			return err
		}
		_ = empty.Close()
	}
	err = alone(g.file, func() error {
		if now, err := readLimited(g.file); err != nil || !bytes.Equal(now, g.before) {
			return errFileChanged
		}
		return os.Rename(tmp.Name(), g.file)
	})
	if err != nil {
		return err
	}
	syncDir(dirOf(g.file))
	return nil
}

// alone calls fn, which replaces or removes a file that is there, while no other
// leasehold does: each locks the file that it has found under the name. Where files
// cannot be locked, two may do so in the same moment.
func alone(file string, fn func() error) error {
	before, err := os.Stat(file)
	if err != nil {
		return errFileChanged
	}
	unlock, err := plainfile.LockExisting(file)
	switch {
	case err == nil:
		defer unlock()
	case errors.Is(err, plainfile.ErrLocked):
		return err
	}
	if now, err := os.Stat(file); err != nil || !os.SameFile(before, now) {
		return errFileChanged // another's file has this name now, and that one may not be locked
	}
	return fn()
}

var errFileChanged = errors.New("another process has changed it in the meantime")

// name names the file in messages.
func (g *grantFile) name() string {
	if g.path == standardStream {
		return "standard output"
	}
	return g.path
}

func temporary(file string) string { return "." + filepath.Base(file) + "-*" }

// syncDir makes a new file name survive a power failure, if the file system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// remove removes the file of a grant that has ended, unless it holds another by now.
func (g *grantFile) remove() error {
	if g.path == standardStream {
		return nil
	}
	err := alone(g.file, func() error {
		b, err := readLimited(g.file)
		if in, ok := parseGrant(b); err != nil || !ok || in.ID != g.grant.ID {
			return errFileChanged
		}
		return os.Remove(g.file)
	})
	if err != nil && !errors.Is(err, errFileChanged) && !errors.Is(err, fs.ErrNotExist) {
		return misuse.Errorf("the file of the grant is of no more use and could not be removed: %v", err)
	}
	return nil
}

// parseGrant reads a grant as leasehold acquire writes it.
func parseGrant(b []byte) (placedGrant, bool) {
	var g placedGrant
	err := json.Unmarshal(b, &g)
	return g, err == nil && g.ID != "" && g.Table != ""
}

// readLimited reads a regular file that may hold a grant.
func readLimited(file string) ([]byte, error) {
	f, err := plainfile.Open(file, os.O_RDONLY, plainfile.Trusted)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxGrantSize))
}

// dirOf returns the directory of a file. Unlike filepath.Dir it does not clean
// the path: in a/../b, a may be a symbolic link, which only the kernel resolves.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return cmp.Or(strings.TrimSuffix(dir, string(filepath.Separator)), dir, ".")
}
