package cli

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

	"github.com/spf13/cobra"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
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

// checkFile checks the file of a local store. It reports whether the store can be
// opened.
func (d *doctor) checkFile(ctx context.Context, cmd *cobra.Command) bool {
	p := d.place
	named := "named by " + d.namedBy("file", "LEASEHOLD_FILE")
	if p.unnamed {
		named = "as no table and no file is named"
	}
	f := finding{
		Check: "store", State: fine, What: fmt.Sprintf("%s, table %s, %s: %s", p.file, p.table, named, p.scope()),
		Values: map[string]any{"file": p.file, "table": p.table},
	}
	info, err := os.Stat(p.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !p.unnamed:
		d.failed = true
		f.State, f.What = fatal, "no store at "+p.file+", "+named
		f.Do = "check the name, or make the store: leasehold table create" + storeFlags(cmd)
		d.say(f)
		return false
	case errors.Is(err, fs.ErrNotExist):
		f.What += "; the file does not exist yet"
	case err != nil:
		d.trouble("store", err.Error())
		return false
	case !info.Mode().IsRegular():
		d.trouble("store", p.file+" is not a regular file: name another with --file")
		return false
	}
	d.say(f)
	if info != nil {
		d.sayMode(info)
	}
	d.sayFileSystem(p.file)
	return info == nil || d.checkTurn(ctx)
}

// sayMode says who may write to the file, and so break every lock in it.
func (d *doctor) sayMode(info fs.FileInfo) {
	f := finding{
		Check: "file", State: fine, What: fmt.Sprintf("mode %04o, %s", info.Mode().Perm(), bytesText(uint64(info.Size()))),
		Values: map[string]any{"mode": fmt.Sprintf("%04o", info.Mode().Perm()), "bytes": info.Size()},
	}
	if owner := ownerOf(info); owner != "" {
		f.What += ", owned by " + owner
	}
	if info.Mode().Perm()&0o002 != 0 && !d.place.machine {
		f.State, f.Do = warning, "every user of this machine can break every lock in it: chmod o-w "+d.place.file
	}
	d.say(f)
}

// sayFileSystem says what the file is on, and how much of it is free.
func (d *doctor) sayFileSystem(path string) {
	for { // the file and its directory may not exist yet
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	kind, free, err := d.app.FileSystem(path)
	if err != nil {
		d.say(finding{Check: "file system", State: notKnown, What: "its kind and free space are not known: " + err.Error(), Do: "see to it that it is a local disk"})
		return
	}
	f := finding{Check: "file system", State: fine, What: kind, Values: map[string]any{"kind": kind}}
	switch kind := strings.ToLower(kind); {
	case slices.Contains(remoteFileSystems, kind):
		f.State, f.What = fatal, kind+": a lock on a file there may keep nobody out, here or on other machines"
		f.Do = "move the store to a local disk, or use a DynamoDB table for several machines"
	case slices.Contains(servedFileSystems, kind):
		f.State, f.What = warning, kind+": it depends on who serves it whether a lock on a file there keeps anybody out"
		f.Do = "move the store to a local disk"
	case kind == "overlay":
		f.What += ": if this is a container, its processes alone share these locks"
	case kind == "tmpfs":
		f.What += ": in memory, so the locks and their tokens go with a restart of this machine"
	}
	d.say(f)
	f = finding{Check: "free space", State: fine, What: bytesText(free), Values: map[string]any{"bytes": free}}
	if free < leastFree {
		f.State, f.Do = warning, "without space nothing can be acquired, renewed or released: free some"
	}
	d.say(f)
}

// checkTurn waits for a turn with the file. If another process keeps the file
// locked, it says which. It reports whether there was a turn.
func (d *doctor) checkTurn(ctx context.Context) bool {
	d.progress("waiting for the file")
	began := time.Now()
	opened := make(chan error, 1)
	go func() {
		db, err := bbolt.Open(d.place.file, 0o600, &bbolt.Options{Timeout: lockWait, ReadOnly: true})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	var err error
	select {
	case err = <-opened:
	case <-ctx.Done():
		return false
	}
	took := time.Since(began)
	f := finding{Check: "file lock", State: fine, What: "free within " + roundTripText(took), Values: map[string]any{"waitedMs": took.Milliseconds()}}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		d.failed = true
		f.State, f.What = fatal, fmt.Sprintf("another process has kept the file locked for %s", age(lockWait))
		f.Do = "end it, or continue it if it was stopped; fuser -v " + d.place.file + " says which it is"
		if who := lockerOf(d.place.file); who != "" {
			f.What += ": " + who
			f.Do = "end it, or continue it if it was stopped"
		}
		d.say(f)
		return false
	case errors.Is(err, fs.ErrPermission):
		d.trouble("file lock", "this user may not open it: "+err.Error())
		return false
	case err != nil:
		d.trouble("file lock", fmt.Sprintf("the file is not a store: %v: name another with --file", err))
		return false
	}
	d.say(f)
	return true
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
		return fmt.Sprintf("process %s (%s)", words[4], printable(strings.TrimSpace(string(name))))
	}
	return ""
}

// bytesText formats a size for people.
func bytesText(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	size, names := float64(n)/unit, "KMGTPE"
	for size >= unit && len(names) > 1 {
		size, names = size/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %cB", size, names[0])
}
