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

// SeesDescent is true. The watchdog also sees processes outside CMD's group, and the kernel
// sends a signal when one of them ends.
const SeesDescent = true

// kill kills the process. It never kills another process that has received the same number
// since. The handle refers to the process that has the number at the time of the call
// (pidfd_open(2)). kill checks the identity of that process before it uses the handle.
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

// Began returns the time when a process began, in the kernel's units. It returns zero if
// there is no such process. If two processes have had the same number one after the other,
// their times differ.
func Began(pid int) int64 {
	p, _ := readProcess(pid)
	return p.began
}

// supervisorLives reports whether the process with the supervisor's number is still the
// supervisor. It checks this by the parent of the watchdog: when the supervisor dies, the
// watchdog gets another parent.
func (d Descent) supervisorLives() bool {
	return os.Getpid() == d.Supervisor || os.Getppid() == d.Supervisor
}

// All returns CMD and the processes that descend from CMD, including zombies. The
// supervisor has other children, which the SDK has started to get credentials. They are in
// the supervisor's own process group, and All omits them.
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
	if !d.supervisorLives() { // check this after the read: if the supervisor has died, the children may belong to another process with the same number
		return nil, nil
	}
	var found []Process
	for _, pid := range direct {
		if p, ok := readProcess(pid); ok && pid != d.Watchdog && p.group != own {
			p.Direct = true
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ { // the loop also reads the children of processes that it appends to found
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

// childrenOf reads the children of all threads of a process.
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

// readProcess reads the file that proc(5) calls stat: PID (NAME) STATE PARENT GROUP ...,
// and later the number of threads and the time when the process began.
func readProcess(pid int) (Process, bool) {
	b, _ := os.ReadFile(procDir(pid) + "stat") // an empty result is handled below
	_, rest, _ := strings.Cut(string(b), "(")
	i := strings.LastIndexByte(rest, ')') // the name may contain any character
	fields := strings.Fields(rest[i+1:])
	if i < 0 || len(fields) < 20 {
		return Process{}, false
	}
	group, err := strconv.Atoi(fields[2])
	ended := fields[0] == "Z" || fields[0] == "X" // the state is the state of the first thread
	threads, failed := strconv.Atoi(fields[17])
	began, never := strconv.ParseInt(fields[19], 10, 64)
	return Process{
		PID: pid, Name: rest[:i], group: group, began: began, Dead: ended && threads <= 1, headless: ended && threads > 1,
	}, err == nil && failed == nil && never == nil
}

// withEnvironment returns the processes that were started with a variable that has this
// prefix. It finds only processes whose environment this user may read.
func withEnvironment(begins string) []Process {
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
		p, ok := readProcess(pid) // read this before the environment: if another process gets the number meanwhile, kill then notices the difference
		if !ok {
			continue
		}
		env, _ := os.ReadFile(procDir(pid) + "environ") // an empty result is handled below
		// After the first thread of a process has ended, the process's own environ file is
		// empty for root, and unreadable for other users. The environ files of the other
		// threads remain readable.
		if len(env) == 0 && p.headless {
			threads, _ := os.ReadDir(procDir(pid) + "task") // the process may have ended
			for _, thread := range threads {
				of, _ := os.ReadFile(procDir(pid) + "task/" + thread.Name() + "/environ") // the thread may have ended
				env = append(env, of...)
			}
		}
		has := func(kv []byte) bool { return bytes.HasPrefix(kv, []byte(begins)) }
		if slices.ContainsFunc(bytes.Split(env, []byte{0}), has) {
			found = append(found, p)
		}
	}
	return found
}
