// Package watchdog implements the process that runs beside leasehold run. It stops CMD and
// its descendants before trust in the lock ends (see package process). Like package atgate,
// it runs while the program's packages are initialized. It imports next to nothing, because
// its imports must be initialized before it can run. The initialization of the SDK and
// other packages would cost several times as much.
package watchdog

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/boottime"
	_ "github.com/leasehold-go/leasehold/internal/cli/ownrights" // initialized before any code here reads the arguments
	"github.com/leasehold-go/leasehold/internal/durations"
)

// A watchdog stops CMD's process group before trust in the lock ends. Only the watchdog does
// that, so that it happens even if the supervisor is stopped, killed or stuck.
//
// The watchdog reports each signal that it has sent to the supervisor, one per line. The
// supervisor writes orders to the watchdog, one per line:
//
//	group PGID     the process group to stop
//	began N        when CMD began, in the kernel's units
//	held TEXT      prefix NAME=VALUE of a variable that only CMD's environment has
//	trust NS       trust ends at NS of boottime
//	stop           stop the group now: the lock is lost, or the process that started leasehold has ended
//	done           CMD has ended: exit
//	end of input   the supervisor has died: kill the group and exit
//
// The watchdog sends the stop signal at (end of trust − grace), and SIGKILL at the end of
// trust. A group that received the stop signal is killed even if the lock is renewed in between,
// because CMD is already stopping.
type watchdog struct {
	signal  syscall.Signal
	grace   time.Duration
	clock   func() time.Duration
	kill    func(d Descent, group int, sig syscall.Signal)
	reports io.Writer

	descent   Descent
	group     int
	until     time.Duration // end of trust, as a reading of clock; zero if unknown
	signalled bool
	killAt    time.Duration
	killed    bool
}

// These are the names of the orders.
const (
	OrderGroup = "group"
	OrderBegan = "began"
	OrderHeld  = "held"
	OrderTrust = "trust"
	OrderStop  = "stop"
	OrderDone  = "done"
)

// longestSleep is the longest time for which a timer is set. While the machine is
// suspended, timers stop but boottime continues. The watchdog must therefore read boottime
// often.
const longestSleep = 250 * time.Millisecond

// longestOrder limits an order, in bytes. It is longer than an environment variable can be.
const longestOrder = 1 << 20

// Run runs a watchdog. It follows the orders until the order done arrives or its input
// ends. If the input ends first, Run kills CMD. sig is the stop signal, and grace is the
// time between sig and SIGKILL.
func Run(orders io.Reader, reports io.Writer, sig syscall.Signal, grace time.Duration, d Descent) {
	w := &watchdog{signal: sig, grace: grace, clock: boottime.Now, kill: Descent.Signal, reports: reports, descent: d}
	w.run(orders)
}

// run follows the orders until the order done arrives or the input ends.
func (w *watchdog) run(orders io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(orders)
		in.Buffer(nil, longestOrder)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	sleep := time.NewTimer(longestSleep)
	defer sleep.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				w.killNow()
				return
			}
			if line == OrderDone {
				for range lines {
				}
				return
			}
			w.obey(line)
		case <-sleep.C:
		}
		w.act()
		sleep.Reset(w.sleep())
	}
}

func (w *watchdog) obey(line string) {
	order, value, _ := strings.Cut(line, " ")
	n, _ := strconv.ParseInt(value, 10, 64)
	switch order {
	case OrderGroup:
		w.group = int(n)
	case OrderBegan:
		w.descent.Began = n
	case OrderHeld:
		w.descent.Held = value
	case OrderTrust:
		w.until = time.Duration(n)
	case OrderStop:
		w.stop(min(durations.Sum(w.clock(), w.grace), w.until))
	}
}

// act sends the stop signal or SIGKILL to the group if the time for it has come.
func (w *watchdog) act() {
	now := w.clock()
	switch {
	case w.until == 0 || w.group == 0:
	case now >= w.until, w.signalled && now >= w.killAt:
		w.killNow()
	case !w.signalled && now >= durations.Less(w.until, w.grace):
		w.stop(w.until)
	}
}

// stop sends the stop signal to the group. It also sets killAt, the time when act kills the
// group.
func (w *watchdog) stop(killAt time.Duration) {
	if w.signalled {
		return
	}
	w.signalled, w.killAt = true, killAt
	w.send(w.signal)
}

func (w *watchdog) killNow() {
	if w.killed || w.group == 0 {
		return
	}
	w.killed = true
	w.send(syscall.SIGKILL)
}

// send sends a signal to the group, and reports that.
func (w *watchdog) send(sig syscall.Signal) {
	w.kill(w.descent, w.group, sig)
	_, _ = io.WriteString(w.reports, sig.String()+"\n") // fails if the supervisor has died
}

// sleep returns how long to wait before act is called again.
func (w *watchdog) sleep() time.Duration {
	next := durations.Less(w.until, w.grace)
	if w.signalled {
		next = w.killAt
	}
	if w.until == 0 || w.group == 0 || w.killed {
		return longestSleep
	}
	return min(max(durations.Less(next, w.clock()), 0), longestSleep)
}

// Args returns the arguments of a watchdog process. It reads orders from its standard
// input, and writes reports to its standard output.
func Args(sig syscall.Signal, grace time.Duration, d Descent) []string {
	return []string{
		"leasehold", "watchdog", "--", strconv.Itoa(int(sig)), strconv.FormatInt(int64(grace), 10),
		strconv.Itoa(d.Supervisor), strconv.FormatBool(d.GroupOnly),
	}
}

func init() {
	if len(os.Args) != len(Args(0, 0, Descent{})) || os.Args[0] != "leasehold" || os.Args[1] != "watchdog" || os.Args[2] != "--" {
		return
	}
	sig, err := strconv.Atoi(os.Args[3])
	grace, noGrace := strconv.ParseInt(os.Args[4], 10, 64)
	supervisor, nobody := strconv.Atoi(os.Args[5])
	groupOnly, neither := strconv.ParseBool(os.Args[6])
	if err != nil || noGrace != nil || nobody != nil || neither != nil {
		return // a user has typed this command, but it is not meant for users: continue as if it did not exist
	}
	ignoreSignals()
	Run(os.Stdin, os.Stdout, syscall.Signal(sig), time.Duration(grace), Descent{
		Supervisor: supervisor, Watchdog: os.Getpid(), GroupOnly: groupOnly,
	})
	os.Exit(0)
}

// Descent describes CMD's descendants: its process group and, on Linux, every process that
// CMD and its children have started, in any session. On Linux an orphaned descendant
// becomes a child of the supervisor instead of init (PR_SET_CHILD_SUBREAPER). The
// supervisor therefore always finds it.
type Descent struct {
	Supervisor int    // process id of the supervisor, which is the parent of CMD, of the watchdog and of orphans
	Watchdog   int    // process id of the watchdog; zero if it is not a process of its own
	Held       string // prefix, NAME=VALUE, of a variable that only CMD's environment has; empty if unknown
	Began      int64  // time when CMD began (see Began), which distinguishes CMD from another process with the same number; zero if unknown
	GroupOnly  bool   // processes outside CMD's group are left alone, and may continue without the lock
}

// Process is a process that CMD has started.
type Process struct {
	PID      int    // process id; if the group's processes are not known, the group's id
	Name     string // program name; empty if unknown
	Direct   bool   // a child of the supervisor: CMD, or an orphan
	Dead     bool   // a zombie
	Whole    bool   // this value represents all processes of the group
	group    int
	began    int64 // time when the process began, in the kernel's units
	headless bool  // the first thread of the process has ended, but other threads run
}

// kill repeats the killing at intervals of killPause, since processes may be born
// meanwhile. It ends after killTries rounds, since some processes may be impossible to
// kill.
const (
	killPause = 5 * time.Millisecond
	killTries = 100
)

// Signal sends a signal to CMD's group and to the groups of orphans. It sends SIGKILL to
// every descendant. Any other signal is left to the leaders of the remaining groups, as in
// normal operation: a leasehold that leads such a group passes the signal on.
func (d Descent) Signal(group int, sig syscall.Signal) {
	if d.isGroup(group) {
		_ = KillGroup(group, sig) // the error does not matter: a group that has ended needs no signal
	}
	if d.GroupOnly || !SeesDescent {
		return
	}
	if sig == syscall.SIGKILL {
		d.kill(group)
		return
	}
	all, _ := d.All(group)
	groups := []int{group}
	for _, p := range all {
		if p.Direct && !p.Dead && !slices.Contains(groups, p.group) {
			groups = append(groups, p.group)
			_ = KillGroup(p.group, sig)
		}
	}
}

// isGroup reports whether a signal to the group can reach only CMD's group. This is so if
// the process with the group's number is CMD, or if no process has that number. Otherwise
// the supervisor has died while the watchdog was stopped: CMD was then reaped, and another
// process has CMD's number. While any process of CMD's group runs, the kernel does not
// reuse the number.
func (d Descent) isGroup(group int) bool {
	now := Began(group)
	return d.Began == 0 || now == 0 || now == d.Began
}

// kill kills CMD's processes repeatedly until none is left. If the supervisor has died,
// nothing descends from it, and kill finds CMD's processes by their environment instead.
func (d Descent) kill(group int) {
	for range killTries {
		all, _ := d.All(group)
		if d.Held != "" {
			all = append(all, withEnvironment(d.Held)...)
		}
		left := 0
		for _, p := range all {
			if !p.Dead {
				left++
				p.kill()
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(killPause)
	}
}
