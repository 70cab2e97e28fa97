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
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

const (
	readerTimeout = 10 * time.Second       // for a reader to open a FIFO, or to make room in it
	readerPoll    = 100 * time.Millisecond // between two attempts to open a FIFO
	maxGrantSize  = 1 << 20                // bytes; a longer file holds no grant
)

// grantFile is the file that a grant is written to. A regular file is replaced
// as a whole, and only if it is missing, empty or holds a grant that has ended.
// A device, a FIFO or a stream of this process is written to, and never replaced
// or removed.
type grantFile struct {
	path   string    // as the user named it
	stream io.Writer // nil: a regular file
	file   string    // the regular file: path without symbolic links
	before []byte    // its content when it was opened
	absent bool      // it did not exist then
}

// openGrantFile prepares to write a grant of key to path, and refuses a file
// that must not be overwritten. It is called before any request is sent.
func (a *app) openGrantFile(ctx context.Context, path string, in store.Place, key leasehold.Key) (*grantFile, error) {
	if path == standardStream {
		return a.grantToStdout()
	}
	g := &grantFile{path: path}
	var err error
	if g.file, err = plainfile.Named(path); err != nil {
		return nil, unusable(path, err)
	}
	info, err := os.Stat(g.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, unusable(path, err)
	case info.IsDir():
		return nil, misuse.Errorf("--grant %s is a directory: name a file in it", path)
	case !info.Mode().IsRegular() || plainfile.IsStream(g.file):
		return a.openStream(ctx, g)
	}
	if g.before, err = readLimited(g.file); errors.Is(err, fs.ErrNotExist) {
		g.absent = true
	} else if err != nil {
		return nil, unusable(path, err)
	}
	if err := g.mayBeReplaced(a.Now(), in, key); err != nil {
		return nil, err
	}
	return g, g.checkWritable()
}

// grantToStdout prepares to write a grant to standard output.
func (a *app) grantToStdout() (*grantFile, error) {
	if isClosed(a.Env.Stdout) {
		return nil, misuse.Errorf("standard output is closed, and nobody would have the grant: name a file with --grant")
	}
	return &grantFile{path: standardStream, stream: a.Stdout}, nil
}

// requireRegularFile refuses a file that a renewed grant could not replace. It is
// called before the grant is read, as reading may consume it.
func requireRegularFile(path string) error {
	if path == standardStream {
		return nil
	}
	file, err := plainfile.Named(path)
	if err != nil {
		return unusable(path, err)
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) || isRegular(file) && !plainfile.IsStream(file) {
		return nil
	}
	return misuse.Errorf("--grant %s is not a regular file, so the new grant cannot replace it: "+
		"use leasehold renew <OLD >NEW", path)
}

// reopenGrantFile prepares to replace the file that grant was read from by the
// renewed grant.
func (a *app) reopenGrantFile(path string, grant placedGrant) (*grantFile, error) {
	if path == standardStream {
		return a.grantToStdout()
	}
	g := &grantFile{path: path}
	var err error
	if g.file, err = plainfile.Named(path); err != nil {
		return nil, unusable(path, err)
	}
	if g.before, err = readLimited(g.file); err != nil {
		return nil, unusable(path, err)
	}
	if in, ok := parseGrant(g.before); !ok || in.ID != grant.ID {
		return nil, misuse.Errorf("--grant %s has changed while it was being read: try again", path)
	}
	return g, g.checkWritable()
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
	tmp, err := os.CreateTemp(dirOf(g.file), temporary(g.file))
	if err != nil {
		return unusable(g.path, err)
	}
	_ = tmp.Close()
	return os.Remove(tmp.Name())
}

// openStream opens a file that is not a regular one. It waits some time for a
// FIFO to get a reader: a blocking open could wait forever.
func (a *app) openStream(ctx context.Context, g *grantFile) (*grantFile, error) {
	deadline := time.Now().Add(readerTimeout)
	for n := 0; ; n++ {
		f, err := os.OpenFile(g.file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			g.stream = f
			return g, nil
		case !errors.Is(err, syscall.ENXIO) || !isFIFO(g.file):
			return nil, unusable(g.path, err)
		case time.Now().After(deadline):
			return nil, misuse.Errorf("--grant %s: no process has opened this FIFO for reading within %s: start its reader first", g.path, wording.Duration(readerTimeout))
		case n == 0:
			a.say.note("%s is a FIFO without a reader: waiting for one", g.path)
		}
		if !attempts.Wait(ctx, readerPoll) {
			return nil, context.Cause(ctx)
		}
	}
}

// write writes a grant. A regular file gets mode 0600 and is replaced as a whole
// or not at all; if another process has changed it in the meantime, it is left
// alone.
func (g *grantFile) write(grant placedGrant) error {
	b, err := json.Marshal(grant)
	if err != nil {
		return err
	}
	b = []byte(visible.Text(string(b)) + "\n")
	if old, ok := parseGrant(g.before); ok && old.ID != grant.ID && old.Token >= grant.Token {
		return errors.New("it holds a grant from another table of the same name, which may still be held")
	}
	if g.stream == nil {
		return g.replace(b)
	}
	if f, ok := g.stream.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = f.SetWriteDeadline(time.Now().Add(readerTimeout)) // fails for files that have no deadlines
	}
	_, err = g.stream.Write(b)
	return err
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
		if now, err := readLimited(g.file); err != nil || !isRegular(g.file) || !bytes.Equal(now, g.before) {
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

// close closes a stream that openStream opened.
func (g *grantFile) close() {
	if f, ok := g.stream.(*os.File); ok && g.path != standardStream {
		_ = f.Close()
	}
}

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

// removeGrant removes the file of a grant that has ended. It removes only a
// regular file that still holds that grant.
func removeGrant(path, id string) error {
	if path == standardStream {
		return nil
	}
	file, err := plainfile.Named(path)
	if err != nil || plainfile.IsStream(file) || !isRegular(file) {
		return nil // the grant was read from a stream
	}
	err = alone(file, func() error {
		b, err := readLimited(file)
		if in, ok := parseGrant(b); err != nil || !ok || in.ID != id {
			return errFileChanged
		}
		return os.Remove(file)
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

// readLimited reads a file that may hold a grant.
func readLimited(path string) ([]byte, error) {
	f, err := openNamed(path, os.O_RDONLY)
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

func isRegular(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && info.Mode().IsRegular()
}

func isFIFO(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
