package grants

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Standard stands for standard input and output.
const Standard = "-"

// maxGrantSize is in bytes: a longer file holds no grant.
const maxGrantSize = 1 << 20

// File is where a grant is kept: a regular file, which is replaced as a whole, and
// only if it is missing, empty or holds a grant that has ended; or the standard streams.
type File struct {
	path   string // as the user named it, or Standard
	file   string // the regular file: path without symbolic links
	before []byte // its content when it was opened
	absent bool   // it did not exist then
	Grant  Grant  // of one that Read has read
}

// Open prepares to write a grant of key to path, and refuses a file
// that must not be overwritten. It is called before any request is sent.
func Open(path string, now time.Time, in store.Place, key leasehold.Key) (*File, error) {
	g := &File{path: path}
	if path == Standard {
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
	return g, g.CheckWritable()
}

// Read reads the grant to renew or to release, and what replaces or removes it
// there. It is called before any request is sent.
func Read(path string, stdin io.Reader) (*File, error) {
	g, from := &File{path: path}, path
	var err error
	if path == Standard {
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
	if g.Grant, ok = parse(g.before); !ok {
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
func (g *File) mayBeReplaced(now time.Time, wanted store.Place, key leasehold.Key) error {
	if len(bytes.TrimSpace(g.before)) == 0 {
		return nil
	}
	in, ok := parse(g.before)
	if !ok {
		return misuse.Errorf("--grant %s: the file holds no grant, and its content would be lost: name another file", g.path)
	}
	if in.Table == wanted.Table && in.At.File == wanted.File && in.Key == key {
		return nil
	}
	return g.refuseHeld(now, in)
}

// MayBeReplacedIn is mayBeReplaced for the store that the lock is in: a table of the
// same name in another one has another lock.
func (g *File) MayBeReplacedIn(now time.Time, here Place) error {
	in, ok := parse(g.before)
	switch what := in.At.differs(here); {
	case !ok, what == "", what == madeAnew:
		return nil
	}
	return g.refuseHeld(now, in)
}

// refuseHeld returns an error if a grant may still be held.
func (g *File) refuseHeld(now time.Time, in Grant) error {
	if end := leaseEnds(in); now.Before(end) {
		return misuse.Errorf("--grant %s: the file holds a grant of %s (token %d) that may be held until %s: "+
			"run leasehold release -f %[1]s first, or name another file",
			g.path, wording.Key(in.Key), in.Token, end.Local().Format(time.DateTime))
	}
	return nil
}

// CheckWritable checks that a file can be created in the directory.
func (g *File) CheckWritable() error {
	if g.path == Standard {
		return nil
	}
	tmp, err := plainfile.Temporary(g.file, nil, 0o600)
	if err != nil {
		return unusable(g.path, err)
	}
	return os.Remove(tmp)
}

// Write writes a grant. A file gets mode 0600 and is replaced as a whole or not at all;
// if another process has changed it in the meantime, it is left alone.
func (g *File) Write(stdout io.Writer, grant Grant) error {
	b, err := json.Marshal(grant)
	if err != nil {
		return err
	}
	b = []byte(visible.Text(string(b)) + "\n")
	if old, ok := parse(g.before); ok && old.ID != grant.ID && old.Token >= grant.Token {
		return errors.New("it holds a grant from another table of the same name, which may still be held")
	}
	if g.path == Standard {
		_, err = stdout.Write(b)
		return err
	}
	return g.replace(b)
}

func (g *File) replace(b []byte) error {
	tmp, err := plainfile.Temporary(g.file, b, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // fails after a rename, as it should
	if g.absent {
		err = plainfile.Place(tmp, g.file)
		switch {
		case errors.Is(err, fs.ErrExist):
			return errFileChanged
		case err == nil:
			syncDir(filepath.Dir(g.file))
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
		return os.Rename(tmp, g.file)
	})
	if err != nil {
		return err
	}
	syncDir(filepath.Dir(g.file))
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

// Name names the file in messages.
func (g *File) Name() string {
	if g.path == Standard {
		return "standard output"
	}
	return g.path
}

// syncDir makes a new file name survive a power failure, if the file system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// Remove removes the file of a grant that has ended, unless it holds another by now.
func (g *File) Remove() error {
	if g.path == Standard {
		return nil
	}
	err := alone(g.file, func() error {
		b, err := readLimited(g.file)
		if in, ok := parse(b); err != nil || !ok || in.ID != g.Grant.ID {
			return errFileChanged
		}
		return os.Remove(g.file)
	})
	if err != nil && !errors.Is(err, errFileChanged) && !errors.Is(err, fs.ErrNotExist) {
		return misuse.Errorf("the file of the grant is of no more use and could not be removed: %v", err)
	}
	return nil
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
