package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/boottime"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// orderStop sends CMD's process group to the watchdog, as the group to stop.
func (s *supervision) orderStop(c *Child) {
	s.watchdog.order(watchdog.OrderGroup, c.group())
	s.watchdog.order(watchdog.OrderBegan, watchdog.Began(c.group()))
	s.watchdog.order(watchdog.OrderHeld, s.descent.Held)
}

// orderStopNow makes the watchdog stop CMD now, and kill it a grace later.
func (s *supervision) orderStopNow() {
	s.stopNow = true
	s.watchdog.order(watchdog.OrderStop, 0)
}

// sendTrust sends the end of trust to the watchdog, as a reading of the watchdog's clock.
// It reads that clock first and this process's clock second. A delay between the two
// readings therefore makes the end earlier, never later. After one of several locks is
// lost, the end of trust stays unchanged, although the other locks are still renewed.
func (s *supervision) sendTrust() {
	now := boottime.Now()
	until := durations.Sum(now, time.Until(s.lock.TrustedUntil()))
	if s.until == 0 || s.lock.Err() == nil {
		s.until = until
	}
	s.watchdog.order(watchdog.OrderTrust, int64(s.until))
}

// sayStopping reports that CMD and the processes that it has started are being stopped. It
// does so only once.
func (s *supervision) sayStopping() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.say.Event(s.lock.Event(say.Stopping))
	switch {
	case s.orphaned:
		s.say.Text("the process that started leasehold has ended: stopping CMD")
	case s.lock.Err() == nil: // after a loss no text is needed here: the error that leasehold reports at the end explains the stop
		s.say.Text("trust in %s is about to end: stopping CMD", s.lock)
	}
}

// watchdogHandle is the supervisor's side of a watchdog.
type watchdogHandle struct {
	orders  io.WriteCloser
	reports <-chan string // closed when the watchdog has ended
	pid     int           // zero if the watchdog runs in this process
	wait    func()        // waits until the watchdog has ended
}

// startWatchdog starts self, the path of this program, as a watchdog process. If the
// watchdog is stopped (SIGSTOP), it cannot act. This process then kills it and treats it as
// a watchdog that has died.
func startWatchdog(self string, sig syscall.Signal, grace time.Duration, d watchdog.Descent) (*watchdogHandle, error) {
	cmd := exec.Cmd{Path: self, Args: watchdog.Args(sig, grace, d), Env: []string{}, SysProcAttr: ownSession()}
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	reports, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	// Read the pid before the wait for the process begins, since the wait releases the process.
	g := &watchdogHandle{orders: orders, reports: readReports(reports), pid: cmd.Process.Pid, wait: func() { <-ended }}
	go func() {
		defer close(ended)
		waitUnlessStopped(cmd.Process)
	}()
	return g, nil
}

// mostDeaths is the number of watchdog processes that may die while one CMD runs. After the
// last of these deaths, leasehold starts no further watchdog process, since it would
// probably die too.
const mostDeaths = 10

// replaceWatchdog replaces a watchdog that has died. If possible, it starts another
// process, since a watchdog in this process would fail when this process is stopped or
// killed. The new watchdog receives c's group, so that it stops c in time.
func (s *supervision) replaceWatchdog(c *Child) {
	if boottime.Now() >= s.until { // if trust has ended, perhaps while all processes were paused, kill now, because a new watchdog takes time to start
		s.descent.Signal(c.group(), syscall.SIGKILL)
	}
	s.watchdog.end()
	s.deaths++
	err := errors.New("it has died " + wording.Count(s.deaths, "time", "times"))
	if s.deaths < mostDeaths {
		s.watchdog, err = startWatchdog(s.self, s.Stop, s.Grace, s.descent)
	}
	if err != nil {
		s.watchdog = startWatchdogInProcess(s.Stop, s.Grace, s.descent)
	}
	s.descent.Watchdog = s.watchdog.pid
	s.sendTrust()
	s.orderStop(c)
	if err == nil { // report only now, when the new watchdog knows which group to stop
		s.say.Note("the watchdog process has died, or was stopped: started another")
	} else {
		s.say.Note("the watchdog process has died: CMD is stopped in time only while leasehold itself runs: %v", err)
	}
}

// startWatchdogInProcess runs the watchdog in this process. It is used if a separate
// watchdog process cannot be started. This watchdog acts like a separate one, except while
// this process is stopped.
func startWatchdogInProcess(sig syscall.Signal, grace time.Duration, d watchdog.Descent) *watchdogHandle {
	in, orders := io.Pipe()
	reports, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer out.Close()
		watchdog.Run(in, out, sig, grace, d)
	}()
	return &watchdogHandle{orders: orders, reports: readReports(reports), wait: func() { <-done }}
}

func readReports(r io.ReadCloser) <-chan string {
	const most = 4 // more reports than a watchdog ever sends, so sending never blocks
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

// order sends one order to the watchdog. what is the name of the order, and value is a
// number or a line of text. order has no effect on a watchdog that has ended.
func (g *watchdogHandle) order(what string, value any) {
	_, _ = fmt.Fprintf(g.orders, "%s %v\n", what, value)
}

// end ends the watchdog and waits until it has ended. After that the watchdog sends no
// signal. end reports whether a report was still unread. Such a report means that the
// watchdog has sent a signal to CMD.
func (g *watchdogHandle) end() (acted bool) {
	_, _ = fmt.Fprintln(g.orders, watchdog.OrderDone)
	_ = g.orders.Close()
	g.wait()
	for range g.reports {
		acted = true
	}
	return acted
}
