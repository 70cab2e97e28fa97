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

// SeesDescent is true: processes outside CMD's group are seen too, and a signal arrives
// when one of them ends.
const SeesDescent = true

// kill kills the process, but never another process that has received its number since. The
// handle refers to the process with that number at the time of the call (pidfd_open(2)),
// and the identity of that process is checked afterwards.
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
// there is no such process. The time differs between two processes that have had the same
// number.
func Began(pid int) int64 {
	p, _ := readProcess(pid)
	return p.began
}

// supervisorLives reports whether the supervisor's number still belongs to the supervisor.
// When the supervisor dies, its child, the watchdog, gets another parent.
func (d Descent) supervisorLives() bool {
	return os.Getpid() == d.Supervisor || os.Getppid() == d.Supervisor
}

// All returns the processes that descend from CMD, including zombies and CMD. It omits the
// supervisor's children in the supervisor's own process group: the SDK has started these to
// get credentials.
func (d Descent) All(int) ([]Process, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("/proc does not show this process")
	}
	own, err := syscall.Getpgid(d.Supervisor)
	if err != nil {
		return nil, nil //nolint:nilerr // it has died: nobody descends from it
	}
	direct, err := childrenOf(d.Supervisor)
	if err != nil {
		return nil, err
	}
	if !d.supervisorLives() { // checked after the read, since the children may belong to another process with the supervisor's number
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
	b, err := os.ReadFile(procDir(pid) + "stat")
	if err != nil {
		return Process{}, false
	}
	_, rest, _ := strings.Cut(string(b), "(")
	i := strings.LastIndexByte(rest, ')') // the name may contain any character
	if i < 0 {
		return Process{}, false
	}
	fields := strings.Fields(rest[i+1:])
	if len(fields) < 20 {
		return Process{}, false
	}
	group, err := strconv.Atoi(fields[2])
	ended := fields[0] == "Z" || fields[0] == "X" // state of the first thread
	threads, failed := strconv.Atoi(fields[17])
	began, never := strconv.ParseInt(fields[19], 10, 64)
	return Process{
		PID: pid, Name: rest[:i], group: group, began: began, Dead: ended && threads <= 1, headless: ended && threads > 1,
	}, err == nil && failed == nil && never == nil
}

// withEnvironment returns the processes that were started with a variable that has this
// prefix, as far as this user may see.
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
		p, ok := readProcess(pid) // read before the environment, so that kill does not mistake another process for it
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
