package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold"
)

const (
	readerPatience = 10 * time.Second       // for somebody to read a FIFO, or to make room in it
	readerPause    = 100 * time.Millisecond // between two looks for a reader
	longestGrant   = 1 << 20                // what is longer is no grant
	mostLinks      = 40                     // of symbolic links, as on Linux
)

// grantFile is where a grant goes. A regular file is replaced as a whole, and
// only if it is missing, empty or holds a grant that is over; whatever else has
// the name - a device, a FIFO, a stream of this process - is written through
// and never renamed over or removed.
type grantFile struct {
	path   string    // as people named it
	stream io.Writer // nil: a regular file
	file   string    // the regular file, where symbolic links end
	was    []byte    // its content when it was looked at
	absent bool      // there was none
}

// openGrantFile settles where a grant of key in a table is to go, and refuses
// what must not be overwritten. Nothing has been sent by then.
func (a *app) openGrantFile(ctx context.Context, path string, in place, key leasehold.Key) (*grantFile, error) {
	if path == standardStream {
		return &grantFile{path: path, stream: a.Stdout}, nil
	}
	g := &grantFile{path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, unusable(path, err)
	case info.IsDir():
		return nil, usagef("--grant %s: it is a directory: name a file in it", path)
	case !info.Mode().IsRegular() || isStream(path):
		return a.openStream(ctx, g)
	}
	if g.file, err = resolve(path); err != nil {
		return nil, unusable(path, err)
	}
	if isStream(g.file) {
		return a.openStream(ctx, g)
	}
	if g.was, err = readLimited(g.file); errors.Is(err, fs.ErrNotExist) {
		g.absent = true
	} else if err != nil {
		return nil, unusable(path, err)
	}
	if err := g.mayBeReplaced(a.Now(), in, key); err != nil {
		return nil, err
	}
	return g, g.probe()
}

// mustBeAFile refuses what a renewed grant could not be put in the place of,
// before a grant is read from it.
func mustBeAFile(path string) error {
	if path == standardStream {
		return nil
	}
	file, err := resolve(path)
	if err != nil {
		return unusable(path, err)
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) || isRegular(file) && !isStream(file) {
		return nil
	}
	return usagef("--grant %s: it is no regular file, so the new grant cannot be put in its place: "+
		"use leasehold renew <OLD >NEW", path)
}

// grantFileOf is the file that grant was read from, to be replaced by the
// renewed grant.
func (a *app) grantFileOf(path string, grant placedGrant) (*grantFile, error) {
	if path == standardStream {
		return &grantFile{path: path, stream: a.Stdout}, nil
	}
	g := &grantFile{path: path}
	var err error
	if g.file, err = resolve(path); err != nil {
		return nil, unusable(path, err)
	}
	if g.was, err = readLimited(g.file); err != nil {
		return nil, unusable(path, err)
	}
	if in, ok := parseGrant(g.was); !ok || in.ID != grant.ID {
		return nil, usagef("--grant %s: it has changed while it was read: try again", path)
	}
	return g, g.probe()
}

func unusable(path string, err error) error { return usagef("--grant %s: %v", path, pathless(err)) }

// pathless is an error of a file without its operation and name.
func pathless(err error) error {
	var in *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &in):
		return in.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// mayBeReplaced says why a file that is there must stay. A grant of the very
// lock that is wanted need not: once that is granted again, it is over.
func (g *grantFile) mayBeReplaced(now time.Time, wanted place, key leasehold.Key) error {
	if len(bytes.TrimSpace(g.was)) == 0 {
		return nil
	}
	in, ok := parseGrant(g.was)
	if !ok {
		return usagef("--grant %s: the file holds something other than a grant, which would be lost: name another file", g.path)
	}
	if in.Table == wanted.table && in.at.File == wanted.file && in.Key == key {
		return nil
	}
	if end := leaseEnds(in); now.Before(end) {
		return usagef("--grant %s: the file holds a grant of %s (token %d) that may be live until %s: "+
			"leasehold release -f %[1]s first, or name another file",
			g.path, printable(in.Key.String()), in.Token, end.Local().Format(time.DateTime))
	}
	return nil
}

// leaseEnds is when the lease of a grant has run out by this machine's clock: it
// outlasts trust by the margin, a tenth of it.
func leaseEnds(g placedGrant) time.Time { return g.TrustedUntil.Add(g.Lease / 10) }

// probe makes sure that a file can be made beside the grant's.
func (g *grantFile) probe() error {
	tmp, err := os.CreateTemp(dirOf(g.file), temporary(g.file))
	if err != nil {
		return unusable(g.path, err)
	}
	_ = tmp.Close()
	return os.Remove(tmp.Name())
}

// openStream opens what is not a regular file. A FIFO is given some time to
// find a reader: opening one that has none would wait for ever.
func (a *app) openStream(ctx context.Context, g *grantFile) (*grantFile, error) {
	deadline := time.Now().Add(readerPatience)
	for n := 0; ; n++ {
		f, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			g.stream = f
			return g, nil
		case !errors.Is(err, syscall.ENXIO) || !isFIFO(g.path):
			return nil, unusable(g.path, err)
		case time.Now().After(deadline):
			return nil, usagef("--grant %s: nobody has opened this FIFO for reading for %s: start its reader first", g.path, shortDuration(readerPatience))
		case n == 0:
			a.say.note("%s is a FIFO that nobody reads: waiting for a reader", g.path)
		}
		if !sleep(ctx, readerPause) {
			return nil, context.Cause(ctx)
		}
	}
}

// write puts a grant where it goes, readable by its owner alone. A regular
// file is replaced as a whole or not at all, and not if another process has
// put something there meanwhile.
func (g *grantFile) write(grant placedGrant) error {
	b, err := json.Marshal(grant)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if old, ok := parseGrant(g.was); ok && old.ID != grant.ID && old.Token >= grant.Token {
		return errors.New("the grant in it is of another table of that name, and may be live")
	}
	if g.stream == nil {
		return g.replace(b)
	}
	if f, ok := g.stream.(*os.File); ok {
		_ = f.SetWriteDeadline(time.Now().Add(readerPatience)) // only what can be waited for has one
	}
	_, err = g.stream.Write(b)
	return err
}

func (g *grantFile) replace(b []byte) error {
	tmp, err := os.CreateTemp(dirOf(g.file), temporary(g.file)) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone if all went well
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if g.absent {
		err = os.Link(tmp.Name(), g.file)
		switch {
		case errors.Is(err, fs.ErrExist):
			return errChangedMeanwhile
		case err == nil:
			syncDir(dirOf(g.file))
			return nil
		}
		// Not every file system has links.
		if _, err := os.Lstat(g.file); !errors.Is(err, fs.ErrNotExist) {
			return errChangedMeanwhile
		}
	} else if now, err := readLimited(g.file); err != nil || !isRegular(g.file) || !bytes.Equal(now, g.was) {
		return errChangedMeanwhile
	}
	if err := os.Rename(tmp.Name(), g.file); err != nil {
		return err
	}
	syncDir(dirOf(g.file))
	return nil
}

var errChangedMeanwhile = errors.New("another process has written it meanwhile")

// close ends a stream that was opened for the grant.
func (g *grantFile) close() {
	if f, ok := g.stream.(*os.File); ok && g.path != standardStream {
		_ = f.Close()
	}
}

// name is the file for people.
func (g *grantFile) name() string {
	if g.path == standardStream {
		return "standard output"
	}
	return g.path
}

func temporary(file string) string { return "." + filepath.Base(file) + "-*" }

// syncDir makes a new name last through a loss of power, as far as that goes.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// removeGrant removes the file of a grant that is over: nothing but a regular
// file that holds that very grant.
func removeGrant(path, id string) error {
	if path == standardStream {
		return nil
	}
	file, err := resolve(path)
	if err != nil || isStream(file) || !isRegular(file) {
		return nil // a stream, from which the grant was read
	}
	b, err := readLimited(file)
	if in, ok := parseGrant(b); err != nil || !ok || in.ID != id {
		return nil // somebody has put something else there meanwhile
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef("the file of the grant is of no more use and could not be removed: %v", err)
	}
	return nil
}

// parseGrant reads a grant as leasehold acquire writes it.
func parseGrant(b []byte) (placedGrant, bool) {
	var g placedGrant
	err := json.Unmarshal(b, &g)
	return g, err == nil && g.ID != "" && g.Table != ""
}

// readLimited reads a file that may be a grant.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, longestGrant))
}

// resolve follows the symbolic links of a file's name, whose end need not be
// there, up to a stream of this process.
func resolve(path string) (string, error) {
	for range mostLinks {
		info, err := os.Lstat(path)
		if isStream(path) || errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(next) {
			next = dirOf(path) + string(filepath.Separator) + next
		}
		path = next
	}
	return "", errors.New("too many symbolic links")
}

// dirOf is the directory in which a file is made. It is not shortened as by
// package filepath: of a/../b, where a is a link, only the kernel knows the way.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return cmp.Or(strings.TrimSuffix(dir, string(filepath.Separator)), dir, ".")
}

// isStream reports whether a name stands for what a process has open: the file
// behind it is not the name's to replace.
func isStream(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	switch abs {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return strings.HasPrefix(abs, "/dev/fd/") || strings.HasPrefix(abs, "/proc/")
}

func isRegular(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && info.Mode().IsRegular()
}

func isFIFO(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
