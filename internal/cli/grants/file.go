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
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Standard is the path "-". It means standard input for reading, and standard output for
// writing.
const Standard = "-"

// maxGrantSize is the maximum number of bytes that are read from a grant file. No grant is
// so long.
const maxGrantSize = 1 << 20

// File stores one grant for a command: in a regular file, or through standard input and output.
// The package comment says when a regular file is replaced.
type File struct {
	path   string // path as the user gave it, or Standard
	file   string // path with symbolic links resolved
	before []byte // content when the file was opened; nil if the file did not exist
	Grant  Grant  // grant that Read has found in the file
}

// Open prepares to write a grant to the file at path. It refuses a file whose content is
// not a grant. The command calls Open before it sends any request.
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

// Read reads a grant, which the command will then renew or release. The grant comes from
// the file at path or, if path is Standard, from stdin. The command calls Read before it
// sends any request.
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

// regularFile returns path with symbolic links resolved. The file need not exist.
// regularFile refuses a directory and anything else that is not a regular file, such as a
// pipe.
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

// RefuseHeld returns an error if the file contains a grant that may still be held, because
// replacing the file would lose that grant. It accepts a grant of the same key and store, because
// that grant has ended once the command is granted the key.
func (g *File) RefuseHeld(now time.Time, table string, key leasehold.Key, here Place) error {
	in, ok := parse(g.before)
	if !ok || in.Table == table && in.Key == key && in.At.differs(here) == "" { // the stores must match too, because tables of the same name may exist in several stores
		return nil
	}
	if end := leaseEnds(in); now.Before(end) {
		return failure.Misusef("--grant %s: the file holds a grant of %s (token %d) that may be held until %s: "+
			"run leasehold release -f %[1]s first, or name another file",
			g.path, in.Key.String(), in.Token, end.Local().Format(time.DateTime))
	}
	return nil
}

// CheckWritable returns an error if Write would fail. It checks whether standard output is
// closed or, for a regular file, whether a new file can be created in the file's directory.
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

// Write writes grant to the file or to stdout. A file gets mode 0600, and is replaced as a
// whole or not at all. Write leaves the file unchanged and returns an error if another
// process has changed it since it was opened. Write also returns an error if the lock could have
// expired before the grant was written.
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
	} else {
		err = plainfile.Swap(g.file, g.before, b, 0o600)
	}
	if err == nil && time.Now().After(grant.TrustedUntil) {
		err = errors.New("that took longer than the lease")
	}
	return err
}

// Name returns the name of the file as messages show it.
func (g *File) Name() string {
	if g.path == Standard {
		return "standard output"
	}
	return g.path
}

// Remove removes the file after its grant has ended. It leaves the file if it now contains
// another grant.
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

// readLimited returns at most maxGrantSize bytes of a file that may contain a grant.
func readLimited(file string) ([]byte, error) {
	f, err := plainfile.Open(file, os.O_RDONLY, plainfile.Trusted)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxGrantSize))
}
