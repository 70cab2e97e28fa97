package checks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

const (
	// lockWait is how long doctor waits for its turn. A turn takes milliseconds.
	lockWait = 3 * time.Second

	// leastFree is the space below which doctor warns. The file grows by 16 MB at
	// most at a time.
	leastFree = 64 << 20
)

// On these file systems a lock on a file may keep nobody out. The first are served
// by other machines, the second by a program or by the host of a guest, of which
// nobody knows what it does.
var (
	remoteFileSystems = []string{"nfs", "smb", "smbfs", "smb2", "cifs", "afs", "afpfs", "webdav", "coda", "ceph", "lustre", "gpfs", "gfs2", "ocfs2"}
	servedFileSystems = []string{"fuse", "macfuse", "osxfuse", "9p", "vboxsf"}
)

// File is the file of a local store.
type File struct {
	Path, Table string
	Named       string // by what
	Scope       string // whom its locks keep out
	Unnamed     bool   // it is the default: it may not exist yet
	Machine     bool   // it is the store of all users of the machine
	OfAnyUser   bool   // whoever may write to its directory may have made it
	StoreFlags  string // that name it, for a command to type

	FileSystem func(path string) (kind string, free uint64, err error)
}

// Checks are the checks of the file before it is opened as a store.
func (f File) Checks() []Check {
	list := []Check{{"looking at the file", f.file}}
	if _, err := os.Lstat(f.Path); err == nil {
		list = append(list, Check{"waiting for the file", f.turn})
	}
	return list
}

// file says what the file is, who may write to it, and what it is on.
func (f File) file(context.Context) []Finding {
	store := Finding{
		Check: "store", State: OK, What: fmt.Sprintf("%s, table %s, %s: %s", f.Path, f.Table, f.Named, f.Scope),
		Values: map[string]any{"file": f.Path, "table": f.Table},
	}
	info, err := os.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.Unnamed:
		store.State, store.What, store.Failed = Fatal, "no store at "+f.Path+", "+f.Named, true
		store.Do = "check the name, or make the store: leasehold table create" + f.StoreFlags
		return []Finding{store}
	case errors.Is(err, fs.ErrNotExist):
		store.What += "; the file does not exist yet"
		return append([]Finding{store}, f.system()...)
	case err != nil:
		return []Finding{failed("store", err)}
	case info.Mode()&fs.ModeSymlink != 0:
		return []Finding{failed("store", fmt.Errorf("%s is a symbolic link: name the file itself with --file", f.Path))}
	case !info.Mode().IsRegular():
		return []Finding{failed("store", fmt.Errorf("%s is not a regular file: name another with --file", f.Path))}
	case info.Size() == 0:
		return []Finding{failed("store", fmt.Errorf("%s is not a store any more: %w", f.Path, boltstore.ErrEmpty))}
	}
	return append([]Finding{store, f.mode(info)}, f.system()...)
}

// mode says who may write to the file, and so break every lock in it.
func (f File) mode(info fs.FileInfo) Finding {
	found := Finding{
		Check: "file", State: OK, What: fmt.Sprintf("mode %04o, %s", info.Mode().Perm(), wording.Bytes(uint64(info.Size()))),
		Values: map[string]any{"mode": fmt.Sprintf("%04o", info.Mode().Perm()), "bytes": info.Size()},
	}
	if owner := ownerOf(info); owner != "" {
		found.What += ", owned by " + owner
	}
	if info.Mode().Perm()&0o002 != 0 && !f.Machine {
		found.State, found.Do = Warning, "every user of this machine can break every lock in it: chmod o-w "+f.Path
	}
	return found
}

// system says what the file is on, and how much of it is free.
func (f File) system() []Finding {
	path := f.Path
	for { // the file and its directory may not exist yet
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	kind, free, err := f.FileSystem(path)
	if err != nil {
		return []Finding{{Check: "file system", State: Unknown, What: "its kind and free space are not known", Do: "see to it that it is a local disk", Err: err}}
	}
	on := Finding{Check: "file system", State: OK, What: kind, Values: map[string]any{"kind": kind}}
	switch kind := strings.ToLower(kind); {
	case slices.Contains(remoteFileSystems, kind):
		on.State, on.What = Fatal, kind+": a lock on a file there may keep nobody out, here or on other machines"
		on.Do = "move the store to a local disk, or use a DynamoDB table for several machines"
	case slices.Contains(servedFileSystems, kind):
		on.State, on.What = Warning, kind+": it depends on who serves it whether a lock on a file there keeps anybody out"
		on.Do = "move the store to a local disk"
	case kind == "overlay":
		on.What += ": if this is a container, its processes alone share these locks"
	case kind == "tmpfs":
		on.What += ": in memory, so the locks and their tokens go with a restart of this machine"
	}
	space := Finding{Check: "free space", State: OK, What: wording.Bytes(free), Values: map[string]any{"bytes": free}}
	switch {
	case free < 1<<12: // a page of the file
		space.State, space.What, space.Do = Fatal, wording.Bytes(free)+": the disk is full", "free some space there: nothing can be acquired, renewed or released"
	case free < leastFree:
		space.State, space.Do = Warning, "without space nothing can be acquired, renewed or released: free some"
	}
	return []Finding{on, space}
}

// turn waits for a turn with the file. If another process keeps the file locked, it says
// which.
func (f File) turn(ctx context.Context) []Finding {
	owner := plainfile.Members
	if f.OfAnyUser {
		owner = plainfile.Anybody
	}
	began := time.Now()
	opened := make(chan error, 1)
	go func() {
		db, err := bbolt.Open(f.Path, 0o600, &bbolt.Options{
			Timeout: lockWait, ReadOnly: true,
			OpenFile: func(path string, flag int, _ fs.FileMode) (*os.File, error) {
				return plainfile.Open(path, flag, owner)
			},
		})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	var err error
	select {
	case err = <-opened:
	case <-ctx.Done():
		return []Finding{failed("file lock", context.Cause(ctx))}
	}
	took := time.Since(began)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		found := Finding{
			Check: "file lock", State: Fatal, What: fmt.Sprintf("another process has kept the file locked for %s", wording.Age(lockWait)),
			Do: "end it, or continue it if it was stopped; fuser -v " + f.Path + " says which it is", Failed: true,
		}
		if who := lockerOf(f.Path); who != "" {
			found.What += ": " + who
			found.Do = "end it, or continue it if it was stopped"
		}
		return []Finding{found}
	case errors.Is(err, fs.ErrPermission):
		return []Finding{failed("file lock", fmt.Errorf("this user may not open it: %w", err))}
	case err != nil:
		return []Finding{failed("file lock", fmt.Errorf("the file is not a store: %w: name another with --file", err))}
	}
	return []Finding{{Check: "file lock", State: OK, What: "free within " + roundTripText(took), Values: map[string]any{"waitedMs": took.Milliseconds()}}}
}

// lockerOf names the process that has locked a file, as Linux knows it. Empty: not
// known.
func lockerOf(path string) string {
	inode, err := inodeOf(path)
	if err != nil {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK ADVISORY WRITE 4711 fd:01:131076 0 EOF (proc_locks(5))
		words := strings.Fields(lines.Text())
		if len(words) < 6 || words[1] != "FLOCK" || !strings.HasSuffix(words[5], fmt.Sprintf(":%d", inode)) {
			continue
		}
		name, err := os.ReadFile("/proc/" + words[4] + "/comm")
		if err != nil {
			return "process " + words[4]
		}
		return fmt.Sprintf("process %s (%s)", words[4], visible.Name(strings.TrimSpace(string(name))))
	}
	return ""
}
