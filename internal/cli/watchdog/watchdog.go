// Package watchdog implements the watchdog, a process beside "leasehold run". It stops CMD
// and CMD's descendants before trust in the lock ends (see package process).
//
// The watchdog process runs the executable of leasehold, and never leaves the init function of this
// package. The package imports almost nothing. So the process never initializes the AWS SDK, which
// would take several times as long as the rest of its start. Package atgate does the same.
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
	_ "github.com/leasehold-go/leasehold/internal/cli/ownrights" // imported because ownrights must check the process before watchdog reads the arguments
	"github.com/leasehold-go/leasehold/internal/durations"
)

// A watchdog stops CMD in time even if the supervisor (leasehold run) is suspended, killed or
// stuck. It writes one line to the supervisor for each signal that it has sent to CMD. The
// supervisor writes orders to the watchdog, one per line:
//
//	group PGID     the process group to stop
//	began N        when CMD began, as the function Began returns it
//	held TEXT      kill also each process with an environment entry that begins with TEXT
//	trust NS       trust ends at NS nanoseconds on the clock of package boottime
//	stop           stop the group now: the lock is lost, or the process that started leasehold has ended
//	done           CMD has ended: exit
//	end of input   the supervisor has died: kill the group and exit
//
// The watchdog sends the stop signal one grace period before the end of trust, and SIGKILL at the
// end of trust. A renewal after the stop signal does not prevent SIGKILL, because CMD is already
// stopping.
type watchdog struct {
	signal  syscall.Signal
	grace   time.Duration
	clock   func() time.Duration
	kill    func(d Descent, group int, sig syscall.Signal)
	reports io.Writer

	descent   Descent
	group     int
	until     time.Duration // end of trust, by clock; zero if unknown
	signalled bool
	killAt    time.Duration
	killed    bool
}

// Names of the orders that the supervisor sends.
const (
	OrderGroup = "group"
	OrderBegan = "began"
	OrderHeld  = "held"
	OrderTrust = "trust"
	OrderStop  = "stop"
	OrderDone  = "done"
)

// longestSleep limits how long the watchdog sleeps. While the machine is suspended, timers
// stop but the clock boottime continues. So the watchdog must read boottime often.
const longestSleep = 250 * time.Millisecond

// longestOrder is the maximum length of an order in bytes. It is longer than any entry of
// an environment, because the order OrderHeld contains the beginning of such an entry.
const longestOrder = 1 << 20

// Run runs a watchdog. It reads orders until "done" arrives or the input ends. The end of input
// means that the supervisor has died, so Run then kills CMD. The signal sig asks CMD to exit, and
// SIGKILL follows after the grace period.
func Run(orders io.Reader, reports io.Writer, sig syscall.Signal, grace time.Duration, d Descent) {
	w := &watchdog{signal: sig, grace: grace, clock: boottime.Now, kill: Descent.Signal, reports: reports, descent: d}
	w.run(orders)
}

// run executes orders until the order "done" arrives or the input ends.
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

// act sends the stop signal or SIGKILL to CMD's process group if that is due.
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

// stop sends the stop signal to CMD's process group. At killAt, act will send SIGKILL.
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

// send sends sig to CMD's process group, and reports this to the supervisor.
func (w *watchdog) send(sig syscall.Signal) {
	w.kill(w.descent, w.group, sig)
	_, _ = io.WriteString(w.reports, sig.String()+"\n") // fails if the supervisor has died
}

// sleep returns how long run waits before it calls act again.
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

// Args returns the command line of a watchdog process. The process reads orders from
// standard input and writes reports to standard output.
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
		return // a user typed "watchdog", which is no command for users: let leasehold report an unknown command
	}
	ignoreSignals()
	Run(os.Stdin, os.Stdout, syscall.Signal(sig), time.Duration(grace), Descent{
		Supervisor: supervisor, Watchdog: os.Getpid(), GroupOnly: groupOnly,
	})
	os.Exit(0)
}

// Descent identifies CMD's descendants: the processes in CMD's group and, on Linux, every process
// that CMD or a descendant has started, even in another session. On Linux, a descendant whose
// parent has ended becomes a child of the supervisor (PR_SET_CHILD_SUBREAPER) instead of init.
type Descent struct {
	Supervisor int    // process id of the supervisor, which is the parent of CMD, the watchdog and orphans
	Watchdog   int    // process id of the watchdog; zero if it runs in the supervisor
	Held       string // beginning of an environment entry NAME=VALUE that only CMD and its descendants have; empty if unknown
	Began      int64  // when CMD began, as returned by the function Began; zero if unknown
	GroupOnly  bool   // if true, only CMD's group is signalled, and other descendants may continue without the lock
}

// Process is CMD or one of its descendants.
type Process struct {
	PID      int    // process id; the group's id if Whole is true
	Name     string // name of the program; empty if unknown
	Group    int    // id of the process group
	Direct   bool   // true for a child of the supervisor: CMD, or an orphan
	Dead     bool   // true for a zombie
	Whole    bool   // true if this represents all processes of CMD's group, because they cannot be listed
	began    int64  // when the process began, as returned by the function Began
	headless bool   // true if the first thread has ended but other threads run
}

// The method Descent.kill searches for processes again after each killPause, because they may
// start new ones. It searches at most killTries times, because some processes may be impossible
// to kill.
const (
	killPause = 5 * time.Millisecond
	killTries = 100
)

// Signal sends sig to CMD's group and, unless d.GroupOnly is true, to descendants outside it.
// SIGKILL goes to each of these descendants. Any other signal goes only to the groups of orphans,
// because a descendant with a parent may get it from its parent, such as a nested "leasehold run".
func (d Descent) Signal(group int, sig syscall.Signal) {
	// The supervisor and CMD's group may have ended while this watchdog was suspended. Do not
	// signal the group if its id now belongs to another program: to a process that began at another
	// time than CMD. If no process has the id, CMD has ended, but the kernel keeps the id for CMD's
	// group.
	if now := Began(group); d.Began == 0 || now == 0 || now == d.Began {
		_ = KillGroup(group, sig) // fails if the group has no processes, and then no signal is needed
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
		if p.Direct && !p.Dead && !slices.Contains(groups, p.Group) {
			groups = append(groups, p.Group)
			_ = KillGroup(p.Group, sig)
		}
	}
}

// kill finds and kills CMD's descendants, and repeats this until none is left. The method All
// finds only descendants of the supervisor, so it finds nothing once the supervisor has died. So
// kill also searches for processes whose environment contains d.Held.
func (d Descent) kill(group int) {
	for range killTries {
		all, _ := d.All(group)
		if d.Held != "" {
			all = append(all, withEnvironment(d.Held)...)
		}
		all = slices.DeleteFunc(all, func(p Process) bool { return p.Dead })
		for _, p := range all {
			p.kill()
		}
		if len(all) == 0 {
			return
		}
		time.Sleep(killPause)
	}
}
