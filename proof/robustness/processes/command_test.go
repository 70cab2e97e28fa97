//go:build linux

package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// watchdogOf waits until the process leasehold has a watchdog other than the process "but", and
// returns its process ID.
func watchdogOf(t *testing.T, leasehold, but int) int {
	t.Helper()
	for end := now() + bound; now() < end; wait(5 * time.Millisecond) {
		for _, list := range lab.Must(filepath.Glob(filepath.Join("/proc", strconv.Itoa(leasehold), "task", "*", "children")))(t) {
			children, _ := os.ReadFile(list) // ignores the error, which means that this thread of the process has ended
			for child := range strings.FieldsSeq(string(children)) {
				line, _ := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
				if pid := lab.Must(strconv.Atoi(child))(t); pid != but && strings.Contains(string(line), "watchdog") {
					return pid
				}
			}
		}
	}
	t.Fatalf("process %d has no watchdog but %d", leasehold, but)
	return 0
}

func send(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		lab.WantErr(t, fmt.Sprintf("%v to %d", s, pid), syscall.Kill(pid, s), nil)
	}
}

// Two processes run "leasehold run" for the same key, each with a command CMD. The test kills or
// stops the key's holder, its watchdog, its CMD, or two of them. Then the other process must start
// its CMD, and the CMDs must never overlap.
func TestCommandsUnderLockNeverOverlapDespiteKills(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // the watchdog has a tenth of it to kill CMD, on a busy machine
	const ownSession = `setsid "$0" & wait`
	binary := buildCommand(t)
	type fault func(t *testing.T, leasehold, cmd int)
	kill := func(t *testing.T, leasehold, _ int) { send(t, syscall.SIGKILL, leasehold) }
	stop := func(t *testing.T, leasehold, _ int) { send(t, syscall.SIGSTOP, leasehold) }
	watchdogFirst := func(s syscall.Signal, then fault) fault {
		return func(t *testing.T, leasehold, cmd int) {
			watchdog := watchdogOf(t, leasehold, 0)
			send(t, s, watchdog)
			watchdogOf(t, leasehold, watchdog)
			wait(lease / 8) // give leasehold time to tell the new watchdog about CMD
			then(t, leasehold, cmd)
		}
	}
	for _, tc := range []struct {
		name  string
		shell string
		fault fault
		lease time.Duration
	}{
		{"leasehold killed", "", kill, lease},
		{"leasehold killed, CMD is a grandchild", aChild, kill, lease},
		{"leasehold killed, CMD has its own session", ownSession, kill, lease},
		{"leasehold and watchdog killed", "", func(t *testing.T, leasehold, _ int) {
			send(t, syscall.SIGKILL, watchdogOf(t, leasehold, 0), leasehold)
		}, lease},
		{"leasehold and CMD killed", aChild, func(t *testing.T, leasehold, cmd int) { send(t, syscall.SIGKILL, leasehold, cmd) }, lease},
		{"leasehold stopped", "", stop, lease},
		{"leasehold stopped, CMD has its own session", ownSession, stop, lease},
		{"leasehold and CMD stopped", "", func(t *testing.T, leasehold, cmd int) { send(t, syscall.SIGSTOP, leasehold, cmd) }, lease},
		{"watchdog killed, then leasehold killed", "", watchdogFirst(syscall.SIGKILL, kill), lease},
		{"watchdog killed, then leasehold killed, CMD is a grandchild", aChild, watchdogFirst(syscall.SIGKILL, kill), lease},
		{"watchdog stopped, then leasehold killed, CMD is a grandchild", aChild, watchdogFirst(syscall.SIGSTOP, kill), lease},
		{"watchdog killed, then leasehold stopped", "", watchdogFirst(syscall.SIGKILL, stop), lease},
		{"CMD killed", "", func(t *testing.T, _, cmd int) { send(t, syscall.SIGKILL, cmd) }, 6 * bound}, // too long for the test: leasehold must release the key
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// The tables are on a server, because a stopped process might keep the file of a local
			// store locked.
			at := place{Endpoint: engines.Run(t, engines.Dynoxide).Endpoint}
			c := newCrew(t, "cmd", at)
			for range 2 {
				c.command(commandRun{binary: binary, at: at, key: "k", lease: tc.lease, shell: tc.shell, hold: 6 * bound})
			}
			if _, ok := c.watcher.await(bound, granted); !ok {
				t.Fatal("no process was granted the key")
			}
			wait(lease / 2) // give leasehold time to renew
			first, leasehold := c.holder()
			cmd := lab.Must(strconv.Atoi(first.Text))(t)
			since := now()
			tc.fault(t, leasehold.PID(), cmd)
			c.journal.write(Event{Who: first.Who, Kind: Stopped}) // tells Verify that the first run is paused from now on
			next, ok := c.watcher.await(bound, func(e Event) bool { return e.Kind == Granted && e.Who != first.Who && e.At > since })
			if !ok {
				t.Fatal("no other process was granted the key")
			}
			_ = leasehold.Continue() // leasehold may continue, but its CMD must do nothing
			c.must(next.Who, func(e Event) bool { return e.Kind == Believes && e.At > next.At+lease/4 }, "a belief a quarter of a lease later")
			lab.Want(t, "violated rules", broken(c.end()), nil)
		})
	}
}

// holder returns the last event of kind Granted, and the process that was granted the key. Earlier
// events do not count: on a busy machine, their processes may have lost the key.
func (c *crew) holder() (last Event, by *process.Process) {
	c.t.Helper()
	for _, e := range c.events() {
		if granted(e) {
			last = e
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slots {
		if s.who == last.Who && s.process != nil {
			return last, s.process
		}
	}
	c.t.Fatalf("%s was granted the key, and has ended", last.Who)
	return Event{}, nil
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
	lab.Want(t, "a worker reported the full disk", seen > 0, true)
	verify(t, c.finish())
}
