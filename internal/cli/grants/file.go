package grants

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Standard means standard input and output.
const Standard = "-"

// maxGrantSize is the limit for a grant file, in bytes. A longer file contains no grant.
const maxGrantSize = 1 << 20

// File is the store of one grant: a regular file, or the standard streams. A regular file is
// replaced entirely, and only if it is missing, empty or contains a grant that has ended.
type File struct {
	path   string // the user's path, or Standard
	file   string // the regular file: path without symbolic links
	before []byte // content of the file when it was opened; nil if it did not exist
	Grant  Grant  // the grant in the file, set by Read
}

// Open prepares to write a grant to path. It refuses a file with content other than a
// grant. It is called before any request is sent.
func Open(path string, stdout *say.Output) (*File, error) {
	g := &File{path: path}
	if path == Standard {
		return g, g.CheckWritable(stdout)
	}
	var err error
	if g.file, err = regularFile(path); err != nil {
		return nil, err
	}
	if g.before, err = readLimited(g.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unusable(path, err)
	}
	if _, ok := parse(g.before); !ok && len(bytes.TrimSpace(g.before)) > 0 {
		return nil, failure.Misusef("--grant %s: the file holds no grant, and its content would be lost: name another file", path)
	}
	return g, g.CheckWritable(stdout)
}

// Read reads the grant to renew or to release, and prepares to replace or remove the grant
// in its file. It is called before any request is sent.
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
		return nil, failure.Misusef("cannot read the grant that leasehold acquire wrote: %s: %v", from, failure.WithoutPath(err))
	}
	var ok bool
	if g.Grant, ok = parse(g.before); !ok {
		return nil, failure.Misusef("%s contains no grant of leasehold acquire", from)
	}
	return g, nil
}

// regularFile returns the name, without symbolic links, of the file at path. The file need
// not exist. An existing file is refused if it could not be read back, replaced and
// removed.
func regularFile(path string) (string, error) {
	file, err := plainfile.Named(path)
	if err != nil {
		return "", unusable(path, err)
	}
	info, err := os.Lstat(file)
	switch {
	case err == nil && info.IsDir():
		return "", failure.Misusef("--grant %s is a directory: name a file in it", path)
	case plainfile.IsStream(file) || err == nil && !info.Mode().IsRegular():
		return "", failure.Misusef("--grant %s is not a regular file: leave out --grant and redirect, "+
			"as in acquire KEY >FILE, renew <OLD >NEW or release <FILE", path)
	}
	return file, nil
}

func unusable(path string, err error) error {
	return failure.Misusef("--grant %s: %v", path, failure.WithoutPath(err))
}

// RefuseHeld refuses to replace a grant that may still be held. The only such grant that
// may be replaced is one of the lock that is about to be acquired: it has ended once that
// lock is granted again.
func (g *File) RefuseHeld(now time.Time, table string, key leasehold.Key, here Place) error {
	in, ok := parse(g.before)
	if !ok || in.Table == table && in.Key == key && in.At.differs(here) == "" { // in another store, a table with the same name has another lock
		return nil
	}
	if end := leaseEnds(in); now.Before(end) {
		return failure.Misusef("--grant %s: the file holds a grant of %s (token %d) that may be held until %s: "+
			"run leasehold release -f %[1]s first, or name another file",
			g.path, wording.Key(in.Key), in.Token, end.Local().Format(time.DateTime))
	}
	return nil
}

// CheckWritable checks that standard output is open, or that a file can be created in the
// directory.
func (g *File) CheckWritable(stdout *say.Output) error {
	switch {
	case g.path == Standard && say.IsClosed(stdout.To):
		return failure.Misusef("standard output is closed, so the grant would be lost: name a file with --grant")
	case g.path == Standard:
		return nil
	}
	tmp, err := plainfile.Temporary(g.file, nil, 0o600)
	if err != nil {
		return unusable(g.path, err)
	}
	return os.Remove(tmp)
}

// Write writes a grant. A file gets mode 0600 and is replaced as a whole or not at all. If
// another process has changed the file in the meantime, Write leaves it unchanged.
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
	return plainfile.Swap(g.file, g.before, b, 0o600)
}

// Name names the file in messages.
func (g *File) Name() string {
	if g.path == Standard {
		return "standard output"
	}
	return g.path
}

// Remove removes the file of a grant that has ended, unless the file now holds another
// grant.
func (g *File) Remove() error {
	if g.path == Standard {
		return nil
	}
	err := plainfile.Alone(g.file, func(now []byte) error {
		if in, ok := parse(now); !ok || in.ID != g.Grant.ID {
			return nil
		}
		return os.Remove(g.file)
	})
	if err != nil && !errors.Is(err, plainfile.ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
		return failure.Misusef("the grant's file is no longer needed and could not be removed: %v", err)
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
