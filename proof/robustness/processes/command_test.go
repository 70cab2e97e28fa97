//go:build linux

package processes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// childOf returns the child process of pid whose command line contains word.
func childOf(t *testing.T, pid int, word string) int {
	t.Helper()
	for _, list := range lab.Must(filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children")))(t) {
		children, _ := os.ReadFile(list) // ignores the error, which means that this thread of the process has ended
		for child := range strings.FieldsSeq(string(children)) {
			line, _ := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if strings.Contains(string(line), word) {
				return lab.Must(strconv.Atoi(child))(t)
			}
		}
	}
	t.Fatalf("process %d has no child %q", pid, word)
	return 0
}

func send(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			t.Errorf("%v to %d: %v", s, pid, err)
		}
	}
}

// Two processes run "leasehold run" for the same key, each with a command CMD. The test kills or
// stops one or two of three processes: the holder of the key, its watchdog, and its CMD. Then the
// other "leasehold run" must start its CMD, and the two CMDs must never run at the same time.
func TestCommandsUnderLockNeverOverlapDespiteKills(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	const ownSession = `setsid "$0" & wait`
	binary := buildCommand(t)
	type fault func(t *testing.T, leasehold, cmd int)
	kill := func(t *testing.T, leasehold, _ int) { send(t, syscall.SIGKILL, leasehold) }
	stop := func(t *testing.T, leasehold, _ int) { send(t, syscall.SIGSTOP, leasehold) }
	watchdogFirst := func(s syscall.Signal, then fault) fault {
		return func(t *testing.T, leasehold, cmd int) {
			send(t, s, childOf(t, leasehold, "watchdog"))
			wait(lease / 4)
			then(t, leasehold, cmd)
		}
	}
	for _, tc := range []struct {
		name  string
		shell string
		fault fault
		at    time.Duration // time limit for the next grant; 0 if the next grant requires that the lease expires
	}{
		{"leasehold killed", "", kill, 0},
		{"leasehold killed, CMD is a grandchild", aChild, kill, 0},
		{"leasehold killed, CMD has its own session", ownSession, kill, 0},
		{"leasehold and watchdog killed", "", func(t *testing.T, leasehold, _ int) {
			send(t, syscall.SIGKILL, childOf(t, leasehold, "watchdog"), leasehold)
		}, 0},
		{"leasehold and CMD killed", aChild, func(t *testing.T, leasehold, cmd int) { send(t, syscall.SIGKILL, leasehold, cmd) }, 0},
		{"leasehold stopped", "", stop, 0},
		{"leasehold stopped, CMD has its own session", ownSession, stop, 0},
		{"leasehold and CMD stopped", "", func(t *testing.T, leasehold, cmd int) { send(t, syscall.SIGSTOP, leasehold, cmd) }, 0},
		{"watchdog killed, then leasehold killed", "", watchdogFirst(syscall.SIGKILL, kill), 0},
		{"watchdog killed, then leasehold killed, CMD is a grandchild", aChild, watchdogFirst(syscall.SIGKILL, kill), 0},
		{"watchdog stopped, then leasehold killed, CMD is a grandchild", aChild, watchdogFirst(syscall.SIGSTOP, kill), 0},
		{"watchdog killed, then leasehold stopped", "", watchdogFirst(syscall.SIGKILL, stop), 0},
		{"CMD killed", "", func(t *testing.T, _, cmd int) { send(t, syscall.SIGKILL, cmd) }, 2 * lease / 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			at := place{File: t.TempDir() + "/locks.db"}
			c := newCrew(t, "cmd", at)
			for range 2 {
				c.command(commandRun{binary: binary, at: at, key: "k", lease: lease, shell: tc.shell, hold: 6 * bound})
			}
			first, ok := c.watcher.await(bound, granted)
			if !ok {
				t.Fatal("no process was granted the key")
			}
			cmd := lab.Must(strconv.Atoi(first.Text))(t)
			i := 0
			if c.second() == first.Who {
				i = 1
			}
			c.mu.Lock()
			leasehold := c.slots[i].process
			c.mu.Unlock()
			wait(lease) // give leasehold time to renew
			since := now()
			tc.fault(t, leasehold.PID(), cmd)
			c.journal.write(Event{Who: first.Who, Kind: Stopped}) // tells Verify that the first run is paused from now on
			next, ok := c.watcher.await(bound, func(e Event) bool { return e.Kind == Granted && e.Who != first.Who })
			if !ok {
				t.Fatal("no other process was granted the key")
			}
			if took := next.At - since; tc.at != 0 && took > tc.at {
				t.Errorf("the next CMD began after %v, want it at once", took)
			}
			_ = leasehold.Continue() // leasehold may continue, but its CMD must do nothing
			c.must(next.Who, func(e Event) bool { return e.Kind == Believes && e.At > next.At+lease/2 }, "a belief half a lease later")
			if got := broken(c.end()); got != nil {
				t.Errorf("violated rules: %q", got)
			}
		})
	}
}

func says(e Event, words string) bool { return strings.Contains(e.Text, words) }

func TestLocksStayExclusiveDespiteFullDisk(t *testing.T) {
	t.Parallel()
	const lease, workers = time.Second, 6
	d := mountDisk(t)
	at := place{File: filepath.Join(d.root, "locks.db")}
	c := newCrew(t, "disk", at)
	for range workers {
		c.worker(task{Place: at, Keys: keysOf(3), Lease: lease})
	}
	full := func(e Event) bool { return says(e, "no space left on device") }
	var seen int
	for range 4 {
		wait(lease)
		c.journal.write(Event{Kind: Broke, Text: "the disk is full"})
		from := now()
		d.fill()
		// Writes may succeed although the disk is full, because the database (bbolt) first uses the
		// free pages in its file. So the test requires an error in only one of the four rounds.
		if _, ok := c.watcher.await(bound, func(e Event) bool { return e.At > from && full(e) }); ok {
			seen++
		}
		wait(lease)
		d.free()
	}
	if seen == 0 {
		t.Error("no worker reported the full disk")
	}
	verify(t, c.finish())
}
