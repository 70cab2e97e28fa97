package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// seesDescent says that processes outside CMD's group are seen too, and that a
// signal tells when one of them ends.
const seesDescent = true

func notifyDeaths(c chan<- os.Signal) { signal.Notify(c, unix.SIGCHLD) }
func ignoreDeaths(c chan<- os.Signal) { signal.Stop(c) }

// adoptOrphans makes orphans of this process's descendants its children.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // exists since Linux 3.4, Go asks for 3.2: then only CMD's group is seen
}

// reapOrphan takes note of the end of a child that this process has not started.
// Its own children are left to those who wait for them.
func reapOrphan(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }

func killProcess(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }

// all returns the processes that descend from CMD, zombies and CMD included. A
// child of the supervisor in the supervisor's own group is none of them: the SDK
// has started it to get credentials.
func (d descent) all(int) ([]process, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("/proc does not show this process")
	}
	own, err := unix.Getpgid(d.supervisor)
	if err != nil {
		return nil, nil //nolint:nilerr // it has died: nobody descends from it
	}
	direct, err := childrenOf(d.supervisor)
	if err != nil {
		return nil, err
	}
	var found []process
	for _, pid := range direct {
		if p, ok := readProcess(pid); ok && pid != d.watchdog && p.group != own {
			p.direct = true
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ { // found grows
		below, err := childrenOf(found[i].PID)
		if err != nil {
			continue // it has ended
		}
		for _, pid := range below {
			if p, ok := readProcess(pid); ok {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

// childrenOf reads the children of all threads of a process.
func childrenOf(pid int) ([]int, error) {
	dir := fmt.Sprintf("/proc/%d/task/", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var children []int
	seen := false
	for _, thread := range threads {
		b, readErr := os.ReadFile(dir + thread.Name() + "/children")
		if readErr != nil {
			err = readErr // the thread has ended, or the kernel has no such file
			continue
		}
		seen = true
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	if seen {
		err = nil
	}
	return children, err
}

// readProcess reads what proc(5) calls stat: PID (NAME) STATE PARENT GROUP ..., and
// further on the number of threads.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	_, rest, _ := strings.Cut(string(b), "(")
	i := strings.LastIndexByte(rest, ')') // the name may have any character
	if i < 0 {
		return process{}, false
	}
	fields := strings.Fields(rest[i+1:])
	if len(fields) < 18 {
		return process{}, false
	}
	group, err := strconv.Atoi(fields[2])
	ended := fields[0] == "Z" || fields[0] == "X" // its first thread
	threads, failed := strconv.Atoi(fields[17])
	return process{PID: pid, Name: rest[:i], group: group, dead: ended && threads <= 1}, err == nil && failed == nil
}

// withEnvironment returns the processes that were started with a variable that
// begins so, as far as this user may see that.
func withEnvironment(begins string) []process {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if len(env) == 0 { // its first thread may have ended: ask the others
			others, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/environ", pid)) // the pattern is good
			for _, path := range others {
				of, _ := os.ReadFile(path) // the thread may have ended
				env = append(env, of...)
			}
		}
		has := func(kv []byte) bool { return bytes.HasPrefix(kv, []byte(begins)) }
		if p, ok := readProcess(pid); ok && slices.ContainsFunc(bytes.Split(env, []byte{0}), has) {
			found = append(found, p)
		}
	}
	return found
}
