//go:build linux

package processes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// diskVariable is the name of an environment variable. If the variable is set, it contains the path
// of a folder. This program then mounts a small file system on that folder, and keeps it mounted.
const diskVariable = "LEASEHOLD_PROCESSES_DISK"

// diskSize is the size of the disk in bytes: enough for the data of several thousand commits.
const diskSize = 8 << 20

// disk is a file system of a few megabytes in memory, mounted in a separate mount
// namespace. A test can fill it without any effect on other file systems.
type disk struct {
	t    testing.TB
	root string // path of the disk for processes outside the mount namespace
}

// mountDisk creates and mounts a disk, which exists until the test ends.
func mountDisk(t testing.TB) *disk {
	t.Helper()
	at := t.TempDir()
	cmd := again(diskVariable, at)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Getuid(); uid != 0 { // without root rights, a process needs a user namespace to be allowed to mount
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	said := &process.Tail{}
	cmd.Stdout, cmd.Stderr = in, said
	keeper, err := process.Start(cmd)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keeper.Kill(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "mounted\n" {
		t.Fatalf("the process that mounts the disk printed %q, %v: %s", line, err, said)
	}
	return &disk{t, filepath.Join("/proc", strconv.Itoa(keeper.PID()), "root", at)}
}

// BeDisk mounts a disk on the folder in diskVariable, and keeps it mounted until the
// process is killed. If the variable is not set, BeDisk returns.
func BeDisk() {
	text := os.Getenv(diskVariable)
	if text == "" {
		return
	}
	var at string
	err := json.Unmarshal([]byte(text), &at)
	if err == nil {
		err = errors.Join(
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), // keeps the disk out of all other mount namespaces
			unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("size=%d,mode=0700", diskSize)),
		)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("mounted")
	select {}
}

// fill writes to the disk until it is full.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.root, "filler"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err = f.Write(make([]byte, 4<<10)); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Errorf("the disk is not full: %v", err)
	}
}

// free removes the file with which fill has filled the disk.
func (d *disk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.root, "filler")); err != nil {
		d.t.Error(err)
	}
}
