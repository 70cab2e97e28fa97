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

// The watchdog is a second process beside leasehold run that stops CMD's
// process group before trust in the lock ends. It alone does that, so that it
// is done whatever becomes of the supervisor: stopped, killed or stuck.
//
// The supervisor writes orders to it, one a line, and reads what it did:
//
//	group PGID     stop this process group when the time comes
//	trust NS       trust ends at NS on the clock of bootClock
//	lost           the lock is lost: stop now
//	done           CMD has ended: so does the watchdog
//	end of input   the supervisor has died: kill at once
//
// It signals the group a grace before trust ends, and kills it when trust
// ends. A group that was signalled is killed then, even if a renewal comes
// through in between: CMD has been told to stop.
type watchdog struct {
	signal syscall.Signal
	grace  time.Duration
	clock  func() time.Duration
	kill   func(group int, sig syscall.Signal) error
	report func(string)

	group     int
	until     time.Duration // by clock; 0: not yet known
	signalled bool
	killAt    time.Duration
	killed    bool
}

// The orders and reports.
const (
	orderGroup = "group"
	orderTrust = "trust"
	orderLost  = "lost"
	orderDone  = "done"

	reportSignalled = "signalled"
	reportKilled    = "killed"
)

// longestSleep bounds a timer's sleep: timers stand still while the machine is
// suspended, the clock of trust does not.
const longestSleep = 250 * time.Millisecond

// run obeys orders until it is done or orders end.
func (w *watchdog) run(orders io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(orders); in.Scan(); {
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
		w.look()
		sleep.Reset(w.sleep())
	}
}

func (w *watchdog) obey(line string) {
	order, value, _ := strings.Cut(line, " ")
	n, _ := strconv.ParseInt(value, 10, 64)
	switch order {
	case orderGroup:
		w.group = int(n)
	case orderTrust:
		w.until = time.Duration(n)
	case orderLost:
		w.stop(min(w.clock()+w.grace, w.until))
	}
}

// look does what is due by the clock.
func (w *watchdog) look() {
	now := w.clock()
	switch {
	case w.until == 0 || w.group == 0:
	case now >= w.until, w.signalled && now >= w.killAt:
		w.killNow()
	case !w.signalled && now >= w.until-w.grace:
		w.stop(w.until)
	}
}

// stop signals the group, to be killed at that time.
func (w *watchdog) stop(killAt time.Duration) {
	if w.signalled {
		return
	}
	w.signalled, w.killAt = true, killAt
	_ = w.kill(w.group, w.signal) // a group that has ended needs no signal
	w.report(reportSignalled)
}

func (w *watchdog) killNow() {
	if w.killed || w.group == 0 {
		return
	}
	w.killed = true
	_ = w.kill(w.group, syscall.SIGKILL) // a group that has ended needs no signal
	w.report(reportKilled)
}

// sleep is how long nothing is due.
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
		Use: "watchdog SIGNAL GRACE", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			sig, err := strconv.Atoi(args[0])
			if err != nil {
				return usagef("watchdog: signal: %v", err)
			}
			grace, err := time.ParseDuration(args[1])
			if err != nil {
				return usagef("watchdog: grace: %v", err)
			}
			outlive()
			w := &watchdog{
				signal: syscall.Signal(sig), grace: grace, clock: bootClock, kill: killGroup,
				report: func(what string) { fmt.Fprintln(a.Stdout, what) },
			}
			w.run(a.Stdin)
			return nil
		},
	}
}

// guard is the supervisor's side of a watchdog.
type guard struct {
	orders  io.WriteCloser
	reports <-chan string // closed when the watchdog has ended
	wait    func()        // until it has ended
}

// startGuard starts self, this program, as a watchdog process.
func startGuard(self string, sig syscall.Signal, grace time.Duration) (*guard, error) {
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
	process, err := os.StartProcess(self, []string{"leasehold", "watchdog", strconv.Itoa(int(sig)), grace.String()}, attr)
	_ = in.Close()
	_ = out.Close()
	if err != nil {
		_ = orders.Close()
		_ = reports.Close()
		return nil, err
	}
	return &guard{
		orders: orders, reports: readReports(reports),
		wait: func() { _, _ = process.Wait() },
	}, nil
}

// guardHere runs a watchdog in this process, where no second one can be had:
// it does the same, unless this process is stopped.
func guardHere(sig syscall.Signal, grace time.Duration) *guard {
	in, orders := io.Pipe()
	reports, out := io.Pipe()
	w := &watchdog{
		signal: sig, grace: grace, clock: bootClock, kill: killGroup,
		report: func(what string) { fmt.Fprintln(out, what) },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer out.Close()
		w.run(in)
	}()
	return &guard{orders: orders, reports: readReports(reports), wait: func() { <-done }}
}

func readReports(r io.ReadCloser) <-chan string {
	const most = 4 // more than a watchdog ever says: its reader never waits
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

// order writes one order; it is not heard if the watchdog has ended.
func (g *guard) order(what string, value int64) {
	_, _ = fmt.Fprintf(g.orders, "%s %d\n", what, value)
}

// end dismisses the watchdog and waits for its end: after that it sends no
// signal. It returns whether the watchdog has reported one that was not read.
func (g *guard) end() (acted bool) {
	_, _ = fmt.Fprintln(g.orders, orderDone)
	_ = g.orders.Close()
	g.wait()
	for range g.reports {
		acted = true
	}
	return acted
}
