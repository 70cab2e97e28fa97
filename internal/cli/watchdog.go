package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// A watchdog is a second process beside leasehold run. It stops CMD's process
// group before trust in the lock ends. Only the watchdog does that, so that it
// happens even if the supervisor is stopped, killed or stuck.
//
// The supervisor writes orders to it, one per line, and reads its reports:
//
//	group PGID     the process group to stop
//	held TEXT      how LEASEHOLD_HELD begins in the environment of CMD
//	trust NS       trust ends at NS on the clock of bootClock
//	lost           the lock is lost: stop the group now
//	done           CMD has ended: exit
//	end of input   the supervisor has died: kill the group and exit
//
// It sends the stop signal at (end of trust − grace), and SIGKILL at the end of
// trust. A group that got the stop signal is killed even if the lock is renewed
// in between, because CMD has been told to stop.
type watchdog struct {
	signal syscall.Signal
	grace  time.Duration
	clock  func() time.Duration
	kill   func(d descent, group int, sig syscall.Signal)
	report func(string)

	descent   descent
	group     int
	until     time.Duration // end of trust, by clock; 0: not yet known
	signalled bool
	killAt    time.Duration
	killed    bool
}

// The orders and reports.
const (
	orderGroup = "group"
	orderHeld  = "held"
	orderTrust = "trust"
	orderLost  = "lost"
	orderDone  = "done"

	reportSignalled = "signalled"
	reportKilled    = "killed"
)

// longestSleep bounds a timer. Timers stop while the machine is suspended, but
// bootClock goes on: it must be read often.
const longestSleep = 250 * time.Millisecond

// longestOrder is more than an environment variable can have.
const longestOrder = 1 << 20

// run follows orders until one says done, or until the input ends.
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
			if line == orderDone {
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
	case orderGroup:
		w.group = int(n)
	case orderHeld:
		w.descent.held = value
	case orderTrust:
		w.until = time.Duration(n)
	case orderLost:
		w.stop(min(w.clock()+w.grace, w.until))
	}
}

// act stops or kills the group if it is time to.
func (w *watchdog) act() {
	now := w.clock()
	switch {
	case w.until == 0 || w.group == 0:
	case now >= w.until, w.signalled && now >= w.killAt:
		w.killNow()
	case !w.signalled && now >= w.until-w.grace:
		w.stop(w.until)
	}
}

// stop sends the group the stop signal. It will be killed at killAt.
func (w *watchdog) stop(killAt time.Duration) {
	if w.signalled {
		return
	}
	w.signalled, w.killAt = true, killAt
	w.kill(w.descent, w.group, w.signal)
	w.report(reportSignalled)
}

func (w *watchdog) killNow() {
	if w.killed || w.group == 0 {
		return
	}
	w.killed = true
	w.kill(w.descent, w.group, syscall.SIGKILL)
	w.report(reportKilled)
}

// sleep returns how long to wait before act is called again.
func (w *watchdog) sleep() time.Duration {
	next := w.until - w.grace
	if w.signalled {
		next = w.killAt
	}
	if w.until == 0 || w.group == 0 || w.killed {
		return longestSleep
	}
	return min(max(next-w.clock(), 0), longestSleep)
}

// newWatchdog is the command that the supervisor starts.
func (a *app) newWatchdog() *cobra.Command {
	return &cobra.Command{
		Use: "watchdog SIGNAL GRACE SUPERVISOR GROUPONLY", Hidden: true, Args: cobra.ExactArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			sig, err := strconv.Atoi(args[0])
			if err != nil {
				return usagef("watchdog: signal: %v", err)
			}
			grace, err := time.ParseDuration(args[1])
			if err != nil {
				return usagef("watchdog: grace: %v", err)
			}
			supervisor, err := strconv.Atoi(args[2])
			if err != nil {
				return usagef("watchdog: supervisor: %v", err)
			}
			ignoreSignals()
			w := &watchdog{
				signal: syscall.Signal(sig), grace: grace, clock: bootClock, kill: descent.signal,
				descent: descent{supervisor: supervisor, watchdog: os.Getpid(), groupOnly: args[3] == "true"},
				report:  func(what string) { fmt.Fprintln(a.Stdout, what) },
			}
			w.run(a.Stdin)
			return nil
		},
	}
}

// watchdogHandle is the supervisor's side of a watchdog.
type watchdogHandle struct {
	orders  io.WriteCloser
	reports <-chan string // closed when the watchdog has ended
	pid     int           // 0: it runs in this process
	wait    func()        // waits until it has ended
}

// startWatchdog starts self, the path of this program, as a watchdog process.
func startWatchdog(self string, sig syscall.Signal, grace time.Duration, d descent) (*watchdogHandle, error) {
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	attr := &os.ProcAttr{
		Files: []*os.File{in, out, nil}, Env: []string{}, Sys: ownSession(),
	}
	process, err := os.StartProcess(self, []string{
		"leasehold", "watchdog", strconv.Itoa(int(sig)), grace.String(), strconv.Itoa(d.supervisor), strconv.FormatBool(d.groupOnly),
	}, attr)
	_ = in.Close()
	_ = out.Close()
	if err != nil {
		_ = orders.Close()
		_ = reports.Close()
		return nil, err
	}
	return &watchdogHandle{
		orders: orders, reports: readReports(reports), pid: process.Pid,
		wait: func() { _, _ = process.Wait() },
	}, nil
}

// startWatchdogInProcess runs the watchdog in this process, if a second process
// cannot be started. It does the same, except while this process is stopped.
func startWatchdogInProcess(sig syscall.Signal, grace time.Duration, d descent) *watchdogHandle {
	in, orders := io.Pipe()
	reports, out := io.Pipe()
	w := &watchdog{
		signal: sig, grace: grace, clock: bootClock, kill: descent.signal, descent: d,
		report: func(what string) { fmt.Fprintln(out, what) },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer out.Close()
		w.run(in)
	}()
	return &watchdogHandle{orders: orders, reports: readReports(reports), wait: func() { <-done }}
}

func readReports(r io.ReadCloser) <-chan string {
	const most = 4 // more than a watchdog ever sends, so sending never blocks
	out := make(chan string, most)
	go func() {
		defer close(out)
		defer r.Close()
		for in := bufio.NewScanner(r); in.Scan(); {
			out <- in.Text()
		}
	}()
	return out
}

// order sends one order. It has no effect if the watchdog has ended.
func (g *watchdogHandle) order(what string, value int64) {
	g.orderText(what, strconv.FormatInt(value, 10))
}

// orderText is order with a text of one line.
func (g *watchdogHandle) orderText(what, value string) {
	_, _ = fmt.Fprintf(g.orders, "%s %s\n", what, value)
}

// end ends the watchdog and waits for that: afterwards it sends no signal. It
// reports whether there was a report that nobody had read: then the watchdog
// has sent a signal.
func (g *watchdogHandle) end() (acted bool) {
	_, _ = fmt.Fprintln(g.orders, orderDone)
	_ = g.orders.Close()
	g.wait()
	for range g.reports {
		acted = true
	}
	return acted
}
