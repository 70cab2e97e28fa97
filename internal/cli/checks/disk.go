package checks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// These file systems may not exclude processes by a file lock. Other machines serve the
// first group. A program, or the host of a virtual machine, serves the second group, with
// unknown behaviour.
var (
	remoteFileSystems = []string{"nfs", "smb", "smbfs", "smb2", "cifs", "afs", "afpfs", "webdav", "coda", "ceph", "lustre", "gpfs", "gfs2", "ocfs2"}
	servedFileSystems = []string{"fuse", "macfuse", "osxfuse", "9p", "vboxsf"}
)

// Disk reports on the file system of a local store's file. kindOf is FileSystem except in
// tests.
func Disk(path string, kindOf func(path string) (string, error)) Finding {
	for { // the file and its directory may not exist yet
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	kind, err := kindOf(path)
	if err != nil {
		return Finding{Check: "file system", State: Unknown, What: "its kind is not known", Do: "make sure that it is a local disk", Err: err}
	}
	on := Finding{Check: "file system", State: OK, What: kind, Values: map[string]any{"kind": kind}}
	switch kind := strings.ToLower(kind); {
	case slices.Contains(remoteFileSystems, kind):
		on.State, on.What = Fatal, kind+": a file lock there may not exclude other processes, on this or other machines"
		on.Do = "move the store to a local disk, or use a DynamoDB table for several machines"
	case slices.Contains(servedFileSystems, kind):
		on.State, on.What = Warning, kind+": a file lock there may not exclude other processes: that depends on its server"
		on.Do = "move the store to a local disk"
	case kind == "overlay":
		on.What += ": in a container, only its own processes share these locks"
	case kind == "tmpfs":
		on.What += ": in memory, so the locks and their tokens go with a restart of this machine"
	}
	return on
}
