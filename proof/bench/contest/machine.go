//go:build linux

package contest

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes the machine on which a contest ran.
type Machine struct {
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	Memory     string `json:"memory"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
}

// thisMachine describes this machine. It reads files in /proc; see proc(5).
func thisMachine() Machine {
	return Machine{
		Processor: procField("/proc/cpuinfo", "model name"), Processors: runtime.NumCPU(),
		Memory: procField("/proc/meminfo", "MemTotal"), Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(),
	}
}

func procField(path, name string) string {
	content, _ := os.ReadFile(path) // content is empty if the file cannot be read
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(path string) string {
	content, _ := os.ReadFile(path) // content is empty if the file cannot be read
	line, _, _ := strings.Cut(string(content), "\n")
	return line
}

// ticks is the processor time of the whole machine, in clock ticks: the total, and the idle
// part of it.
type ticks struct{ all, idle float64 }

// processors returns the processor time of all processors since the machine started.
func processors() (t ticks) {
	const idle, waiting = 3, 4 // indexes of fields in the first line of /proc/stat; see proc(5)
	for i, field := range strings.Fields(firstLine("/proc/stat"))[1:] {
		n, _ := strconv.ParseFloat(field, 64)
		if i < 8 { // the fields from index 8 on (guest time) are already included in earlier fields
			t.all += n
		}
		if i == idle || i == waiting {
			t.idle += n
		}
	}
	return t
}

// busy returns the share of processor time that was not idle since t was measured.
func (t ticks) busy() float64 {
	now := processors()
	if now.all == t.all {
		return 0
	}
	return 1 - (now.idle-t.idle)/(now.all-t.all)
}

// ticksPerSecond is USER_HZ, which is 100 on every Linux system.
const ticksPerSecond = 100

// processorTime returns the processor time that a process has used.
func processorTime(pid int) time.Duration {
	const user, system = 11, 12 // indexes of utime and stime (proc(5)) after the process name, which ends at the last ")" of the line
	stat := firstLine(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0
	}
	var used float64
	for _, i := range []int{user, system} {
		n, _ := strconv.ParseFloat(fields[i], 64)
		used += n
	}
	return time.Duration(used * float64(time.Second) / ticksPerSecond)
}

// residentBytes returns the resident memory of a process, in bytes.
func residentBytes(pid int) int {
	fields := strings.Fields(firstLine(fmt.Sprintf("/proc/%d/statm", pid)))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}
