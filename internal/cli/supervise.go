package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold"
)

// releaseLimit bounds the release after CMD has ended; after it the lease
// frees the key. That of a lost lock is a courtesy.
const (
	releaseLimit     = 5 * time.Second
	lostReleaseLimit = time.Second
)

// supervision is CMD running under a lock.
type supervision struct {
	app     *app
	store   *store
	lock    *leasehold.Lock
	signals *signals
	renewed <-chan struct{} // a renewal has landed
	stop    syscall.Signal
	grace   time.Duration
	cmd     *exec.Cmd

	guard    *guard
	gate     *gate
	stopping bool // the lock is lost, or is about to be: CMD was told to stop

	asked syscall.Signal // to end: the last such signal of the user's; 0: none
}

// run runs CMD and returns how it ended: the error carries the exit code.
func (s *supervision) run() error {
	name := s.cmd.Args[0]
	self, err := s.app.Executable()
	if err == nil {
		s.guard, err = startGuard(self, s.stop, s.grace)
	}
	if err != nil {
		s.app.say.note("no watchdog process: CMD is stopped in time only while leasehold itself runs: %v", err)
		s.guard = guardHere(s.stop, s.grace)
		self = ""
	}
	s.tellTrust()
	c, err := s.start(self)
	if err != nil {
		s.guard.end()
		return s.notStarted(name, err)
	}
	s.supervise(c)
	if s.guard.end() {
		s.sayStopping()
	}
	if s.stopping {
		// What is left of the group must not work on without the lock. Its id
		// is in use until CMD is reaped.
		c.signal(syscall.SIGKILL)
	}
	code := c.reap()
	if err := s.gate.refusal(code); err != nil {
		return s.notStarted(name, err)
	}
	return s.finish(code)
}

// start starts CMD, which does not run before the watchdog has been told of its
// group. With no self to start, the watchdog ends with this process: then
// there is no use in a gate.
func (s *supervision) start(self string) (*child, error) {
	var c *child
	var err error
	if self == "" {
		s.gate = openGate()
		c, err = startChild(s.cmd)
	} else {
		c, s.gate, err = startAtGate(self, s.cmd)
	}
	if err != nil {
		return nil, err
	}
	s.guard.order(orderGroup, int64(c.group()))
	s.gate.open()
	return c, nil
}

// notStarted releases the key and returns why CMD has not run.
func (s *supervision) notStarted(name string, err error) error {
	_ = s.release(releaseLimit) // CMD is what matters, and the lease frees the key
	return startError(name, err)
}

// supervise passes signals on and watches the lock until CMD has ended.
func (s *supervision) supervise(c *child) {
	lost := s.lock.Context().Done()
	reports := s.guard.reports
	passed := s.gate.passed
	var signals <-chan os.Signal // they wait for CMD, which is to get them
	for {
		select {
		case <-c.exited:
			return
		case <-passed:
			passed, signals = nil, s.signals.c
		case sig := <-signals:
			if sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGQUIT {
				s.asked = sig.(syscall.Signal)
			}
			// Who was stopped and goes on looks at the lock first: if it was
			// lost, the watchdog has killed CMD or is about to be told to.
			if s.lock.Err() == nil {
				c.passOn(sig)
			}
		case sig := <-c.stops:
			if s.lock.Err() == nil {
				c.wasStopped(sig)
			}
		case <-s.renewed:
			s.tellTrust()
		case <-lost:
			lost = nil
			s.guard.order(orderLost, 0)
		case report, ok := <-reports:
			switch {
			case !ok:
				s.app.say.note("the watchdog process has died: CMD is stopped in time only while leasehold itself runs")
				s.guard.end()
				s.guard = guardHere(s.stop, s.grace)
				s.tellTrust()
				s.guard.order(orderGroup, int64(c.group()))
				if lost == nil {
					s.guard.order(orderLost, 0)
				}
				reports = s.guard.reports
			case report == reportSignalled, report == reportKilled:
				s.sayStopping()
			}
		}
	}
}

// tellTrust gives the watchdog the time when trust ends. Its own clock is read
// first: what passes in between makes the time earlier, never later.
func (s *supervision) tellTrust() {
	now := bootClock()
	s.guard.order(orderTrust, int64(now+time.Until(s.lock.TrustedUntil())))
}

func (s *supervision) sayStopping() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.app.say.event(s.app.event(eventStopping, s.lock.Key(), s.lock.Token()))
}

// finish releases the lock and settles the exit code.
func (s *supervision) finish(code int) error {
	e := s.app.event(eventExited, s.lock.Key(), s.lock.Token())
	e.ExitCode = &code
	s.app.say.event(e)
	lost := s.lock.Err()
	limit := releaseLimit
	if lost != nil {
		limit = lostReleaseLimit
	}
	released := s.release(limit)
	switch {
	case lost == nil && errors.Is(released, leasehold.ErrLost):
		lost = released
	case lost == nil && released != nil:
		s.app.say.text("%s could not be released, it is free after its lease: %s",
			printable(s.lock.Key().String()), words(released, s.store.table+" in "+s.store.location))
	}
	switch {
	case s.stopping && lost == nil:
		return exit(codeLost, &lateError{s.lock.Key()})
	case lost != nil:
		return exit(codeLost, &stoppedError{lost, s.stopping})
	case code != 0:
		return exit(code, nil)
	}
	return nil
}

// release frees the key. A signal does not interrupt it: it is bounded, and
// saves others the lease.
func (s *supervision) release(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.lock.Release(ctx)
}

// stoppedError is a lock that was lost, and what that meant for CMD.
type stoppedError struct {
	lost    error
	stopped bool
}

func (e *stoppedError) Error() string {
	if e.stopped {
		return e.lost.Error() + "; CMD was stopped"
	}
	return e.lost.Error() + "; CMD had ended by itself"
}

func (e *stoppedError) Unwrap() error { return e.lost }

// lateError is a renewal that came through after CMD had been told to stop.
type lateError struct{ key leasehold.Key }

func (e *lateError) Error() string {
	return printable(e.key.String()) + " could not be renewed until trust was about to end; CMD was stopped"
}

// Is reports whether target is leasehold.ErrLost: CMD was stopped all the same.
func (e *lateError) Is(target error) bool { return target == leasehold.ErrLost }
