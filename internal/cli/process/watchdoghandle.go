package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/boottime"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// orderStop tells the watchdog which process group is CMD's, so that the watchdog can stop this
// group before trust in the lock ends.
func (s *supervision) orderStop(c *Child) {
	s.descent.Began = watchdog.Began(c.group())
	s.watchdog.order(watchdog.OrderGroup, c.group())
	s.watchdog.order(watchdog.OrderBegan, s.descent.Began)
	s.watchdog.order(watchdog.OrderHeld, s.descent.Held)
}

// sendTrust tells the watchdog when trust in the lock ends, on the clock of package boottime. It
// reads this clock first, and then computes how much trusted time is left: a delay in between makes
// the result earlier, never later. Once any lock is lost, it repeats the time sent last.
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
	case s.lock.Err() == nil: // after a loss no message is needed: the error that leasehold prints at its end explains the stop
		s.say.Text("trust in %s is about to end: stopping CMD", s.lock)
	}
}

// watchdogHandle is the supervisor's connection to a running watchdog.
type watchdogHandle struct {
	orders  io.WriteCloser
	reports <-chan string  // reports from the watchdog; closed when it has ended
	pid     int            // process id of the watchdog; zero if it runs in this process
	running sync.WaitGroup // done when the watchdog has ended
}

// startWatchdog starts self, the path of this executable, as a watchdog process. A watchdog
// that is suspended (SIGSTOP) cannot stop CMD in time. So a goroutine kills a suspended
// watchdog, and the supervisor then starts a new one, as after any death of a watchdog.
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
	// Read the pid before waiting for the process, because waiting releases cmd.Process.
	g := &watchdogHandle{orders: orders, reports: readReports(reports), pid: cmd.Process.Pid}
	g.running.Go(func() { waitUnlessStopped(cmd.Process) })
	return g, nil
}

// mostDeaths is how many watchdog processes of one CMD may die. After that, the watchdog runs in
// this process, because another watchdog process would probably die too.
const mostDeaths = 10

// replaceWatchdog starts a new watchdog for c after the old one has died. It prefers a
// separate process, which still works if this process is suspended or killed. The new
// watchdog receives the end of trust and c's process group.
func (s *supervision) replaceWatchdog(c *Child) {
	if boottime.Now() >= s.until { // trust has ended, perhaps while all processes were suspended: kill now, before the slower start
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
	if err == nil { // printed only now that the new watchdog knows which group to stop
		s.say.Note("the watchdog process has died, or was stopped: started another")
	} else {
		s.say.Note("the watchdog process has died: CMD is stopped in time only while leasehold itself runs: %v", err)
	}
}

// startWatchdogInProcess runs the watchdog in a goroutine of this process. It is used if a
// watchdog process cannot be started, or if mostDeaths of them have died. The goroutine does not
// run while this process is suspended, or after this process is killed.
func startWatchdogInProcess(sig syscall.Signal, grace time.Duration, d watchdog.Descent) *watchdogHandle {
	in, orders := io.Pipe()
	reports, out := io.Pipe()
	g := &watchdogHandle{orders: orders, reports: readReports(reports)}
	g.running.Go(func() {
		defer out.Close()
		watchdog.Run(in, out, sig, grace, d)
	})
	return g
}

func readReports(r io.ReadCloser) <-chan string {
	const most = 4 // more than a watchdog ever sends, so that sending to out never blocks
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

// order sends an order to the watchdog: its name, such as watchdog.OrderStop, and a value.
// It does nothing if the watchdog has ended.
func (g *watchdogHandle) order(what string, value any) {
	_, _ = fmt.Fprintf(g.orders, "%s %v\n", what, value)
}

// end makes the watchdog exit, and waits until it has. After that, the watchdog sends no signals.
// The result "acted" is true if end has found unread reports: the watchdog has then sent CMD a
// signal that the supervisor did not know of.
func (g *watchdogHandle) end() (acted bool) {
	_, _ = fmt.Fprintln(g.orders, watchdog.OrderDone)
	_ = g.orders.Close()
	g.running.Wait()
	for range g.reports {
		acted = true
	}
	return acted
}
