package watchdog

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// SeesDescent is true on Linux: leasehold can list all descendants of CMD, even outside CMD's
// process group. The kernel also sends a signal when a descendant ends.
const SeesDescent = true

// kill kills the process p, but never a later process with the same id. It opens a handle to the
// process that has this id now (pidfd_open(2)). It uses the handle only after it has checked that
// this process is p.
func (p Process) kill() {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return // the process has ended
	}
	defer func() { _ = handle.Release() }()
	if now, ok := readProcess(p.PID); ok && now.began == p.began {
		_ = handle.Kill() // fails if the process has ended
	}
}

// Began returns the time at which the process pid began, in clock ticks since the boot. It returns
// zero if no such process exists. The time distinguishes the process from a later one with the
// same id.
func Began(pid int) int64 {
	p, _ := readProcess(pid)
	return p.began
}

// All returns CMD and all its descendants, including zombies. The supervisor may have other
// children, which All omits. The SDK has started some of them, to get credentials: unlike CMD, they
// are in the supervisor's own process group. Others are older than CMD: a shell has started them,
// and has then become leasehold through execve(2).
func (d Descent) All(int) ([]Process, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("/proc does not show this process")
	}
	own, err := syscall.Getpgid(d.Supervisor)
	if err != nil {
		return nil, nil //nolint:nilerr // the supervisor has died, so it has no descendants
	}
	direct, err := childrenOf(d.Supervisor)
	if err != nil {
		return nil, err
	}
	// If the supervisor has died, its id may now belong to another process, and "direct" may
	// contain that process's children. The watchdog notices this, because it gets another parent
	// when the supervisor dies.
	if os.Getpid() != d.Supervisor && os.Getppid() != d.Supervisor {
		return nil, nil
	}
	var found []Process
	for _, pid := range direct {
		if p, ok := readProcess(pid); ok && pid != d.Watchdog && p.Group != own && p.began >= d.Began {
			p.Direct = true
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ { // found grows in this loop, so the loop also reads grandchildren
		below, err := childrenOf(found[i].PID)
		if err != nil {
			continue // the process has ended
		}
		for _, pid := range below {
			if p, ok := readProcess(pid); ok {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/" }

// childrenOf returns the ids of the children of all threads of the process pid.
func childrenOf(pid int) ([]int, error) {
	dir := procDir(pid) + "task/"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var children []int
	seen := false
	for _, thread := range threads {
		b, readErr := os.ReadFile(dir + thread.Name() + "/children")
		if readErr != nil {
			err = readErr // the thread has ended, or this kernel does not have the file
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

// readProcess reads a Process from /proc/PID/stat (proc(5)). The file begins with PID (NAME)
// STATE PARENT GROUP. Later fields contain the number of threads and the start time.
// readProcess returns false if the process does not exist.
func readProcess(pid int) (Process, bool) {
	b, _ := os.ReadFile(procDir(pid) + "stat") // if this fails, b is empty, and i is below 0
	_, rest, _ := strings.Cut(string(b), "(")
	i := strings.LastIndexByte(rest, ')') // the last one, because NAME may also contain )
	fields := strings.Fields(rest[i+1:])
	if i < 0 || len(fields) < 20 {
		return Process{}, false
	}
	group, err := strconv.Atoi(fields[2])
	ended := fields[0] == "Z" || fields[0] == "X" // STATE is the state of the first thread only
	threads, failed := strconv.Atoi(fields[17])
	began, never := strconv.ParseInt(fields[19], 10, 64)
	return Process{
		PID: pid, Name: rest[:i], Group: group, began: began, Dead: ended && threads <= 1, headless: ended && threads > 1,
	}, err == nil && failed == nil && never == nil
}

// withEnvironment returns the processes with an environment variable NAME=VALUE that begins
// with prefix. It sees only processes whose environment this user may read.
func withEnvironment(prefix string) []Process {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []Process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Read the start time before the environment. If a new process gets the id pid between
		// the two reads, p.kill does not kill it, because its start time is not p.began.
		p, ok := readProcess(pid)
		if !ok {
			continue
		}
		env, _ := os.ReadFile(procDir(pid) + "environ") // if this fails, env is empty
		// If the first thread of a process has ended but other threads run,
		// /proc/PID/environ is empty for root and unreadable for other users. The environ
		// files of the other threads remain readable.
		if len(env) == 0 && p.headless {
			threads, _ := os.ReadDir(procDir(pid) + "task") // fails if the process has ended
			for _, thread := range threads {
				of, _ := os.ReadFile(procDir(pid) + "task/" + thread.Name() + "/environ") // fails if the thread has ended
				env = append(env, of...)
			}
		}
		has := func(kv []byte) bool { return bytes.HasPrefix(kv, []byte(prefix)) }
		if slices.ContainsFunc(bytes.Split(env, []byte{0}), has) {
			found = append(found, p)
		}
	}
	return found
}
