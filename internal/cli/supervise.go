package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold"
)

// releaseLimit bounds the release after CMD has ended. If it fails, the key
// becomes free when the lease expires. Releasing a lost lock can only free the
// key sooner, so it gets less time.
const (
	releaseLimit     = 5 * time.Second
	lostReleaseLimit = time.Second
)

// supervision is CMD running under a lock.
type supervision struct {
	app      *app
	store    *store
	hold     hold
	signals  *signals
	renewals *renewals
	stop     syscall.Signal
	grace    time.Duration
	cmd      *exec.Cmd

	watchdog *watchdogHandle
	until    time.Duration // of trust, as the watchdog was told last
	gate     *gate

	descent    descent
	background *background
	stopping   bool // the lock is lost, or is about to be: CMD was told to stop

	onLeft    string         // what to do with processes that outlive CMD: backgroundWait, ...
	endSignal syscall.Signal // the last INT, TERM or QUIT from the user; 0: none
}

// run runs CMD. The error it returns carries the exit code.
func (s *supervision) run() error {
	name := s.cmd.Args[0]
	s.descent = descent{supervisor: os.Getpid(), groupOnly: s.onLeft == backgroundKeep}
	if s.hold.first().Token() != 0 { // otherwise it would be that of other runs too
		s.descent.held = heldBegins(s.cmd.Env)
	}
	s.background = newBackground(s.onLeft)
	defer s.background.end()
	self, err := s.app.Executable()
	if err == nil {
		s.watchdog, err = startWatchdog(self, s.stop, s.grace, s.descent)
	}
	if err != nil {
		s.app.say.note("cannot start the watchdog process: CMD is stopped in time only while leasehold itself runs: %v", err)
		s.watchdog = startWatchdogInProcess(s.stop, s.grace, s.descent)
		self = ""
	}
	s.descent.watchdog = s.watchdog.pid
	s.sendTrust()
	c, err := s.start(self)
	if err != nil {
		s.watchdog.end()
		return s.notStarted(name, err)
	}
	s.supervise(c)
	if s.watchdog.end() {
		s.sayStopping()
	}
	if s.stopping {
		// Other processes of the group may still run: they must not continue
		// without the lock. The group's id cannot be reused before CMD is reaped.
		s.descent.signal(c.group(), syscall.SIGKILL)
	}
	code := c.reap()
	if err := s.gate.execError(code); err != nil {
		return s.notStarted(name, err)
	}
	return s.finish(code)
}

// start starts CMD. CMD does not run before the watchdog has been told of its
// group. If self is empty, the watchdog runs in this process and dies with it:
// then a gate would be of no use.
func (s *supervision) start(self string) (*child, error) {
	var c *child
	var err error
	if self == "" {
		s.gate = noGate()
		c, err = startChild(s.cmd)
	} else {
		c, s.gate, err = startAtGate(self, s.cmd)
	}
	if err != nil {
		return nil, err
	}
	s.orderStop(c)
	s.gate.open()
	return c, nil
}

// orderStop tells the watchdog what to stop.
func (s *supervision) orderStop(c *child) {
	s.watchdog.order(orderGroup, int64(c.group()))
	s.watchdog.orderText(orderHeld, s.descent.held)
}

// notStarted releases the key and returns the reason why CMD did not run.
func (s *supervision) notStarted(name string, err error) error {
	_ = s.release(releaseLimit) // if it fails, the key becomes free when the lease expires
	return startError(name, err)
}

// supervise passes signals on and watches the lock until CMD has ended, and what
// it has left running.
func (s *supervision) supervise(c *child) {
	lost := s.hold.context().Done()
	reports := s.watchdog.reports
	passed, exited := s.gate.passed, c.exited
	var signals <-chan os.Signal // nil until CMD runs and can receive them
	for {
		select {
		case <-exited:
			exited = nil
			s.background.began(c, s.endSignal != 0)
			if s.outlived(c) {
				return
			}
		case <-s.background.deaths:
			s.background.heardOfDeath()
		case <-s.background.look.C:
			if s.outlived(c) {
				return
			}
		case <-passed:
			passed, signals = nil, s.signals.c
		case sig := <-signals:
			if sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGQUIT {
				s.endSignal = sig.(syscall.Signal)
			}
			// This process may have been stopped and continued. If the lock was
			// lost meanwhile, the watchdog kills CMD: do not let it continue.
			switch {
			case s.hold.lost() != nil:
			case exited == nil:
				s.stopBackground(c, sig)
			default:
				c.passOn(sig)
			}
		case sig := <-c.stops:
			if s.hold.lost() == nil {
				c.wasStopped(sig)
			}
		case <-s.renewals.renewed:
			s.sendTrust()
		case <-lost:
			lost = nil
			s.watchdog.order(orderLost, 0)
		case report, ok := <-reports:
			switch {
			case !ok:
				s.app.say.note("the watchdog process has died: CMD is stopped in time only while leasehold itself runs")
				s.watchdog.end()
				s.watchdog = startWatchdogInProcess(s.stop, s.grace, s.descent)
				s.sendTrust()
				s.orderStop(c)
				if lost == nil {
					s.watchdog.order(orderLost, 0)
				}
				reports = s.watchdog.reports
			case report == reportSignalled, report == reportKilled:
				s.sayStopping()
			}
		}
	}
}

// sendTrust sends the watchdog the time when trust ends. The watchdog's clock is
// read first, so that a delay between the two readings makes that time earlier,
// never later. After a loss CMD keeps the time that it had: others of several locks
// are still renewed.
func (s *supervision) sendTrust() {
	now := bootClock()
	until := now + time.Until(s.hold.trustedUntil())
	if s.until == 0 || s.hold.lost() == nil {
		s.until = until
	}
	s.watchdog.order(orderTrust, int64(s.until))
}

func (s *supervision) sayStopping() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.app.say.event(s.event(eventStopping))
	if s.hold.lost() != nil {
		s.app.say.text("%s is lost: stopping CMD", s.hold)
	} else {
		s.app.say.text("trust in %s is about to end: stopping CMD", s.hold)
	}
}

// event returns an event of the first lock.
func (s *supervision) event(kind string) eventJSON {
	return s.app.event(kind, s.hold.first().Key(), s.hold.first().Token())
}

// finish releases the lock and returns the error with the exit code.
func (s *supervision) finish(code int) error {
	e := s.event(eventExited)
	e.ExitCode = &code
	s.app.say.event(e)
	lost, failed := s.hold.lost(), s.renewals.failure()
	limit := releaseLimit
	if lost != nil {
		limit = lostReleaseLimit
	}
	if s.stopping && lost == nil { // what could not renew it may not release it either
		s.app.say.text("CMD has ended: trying to release %s, for up to %s", s.hold, shortDuration(limit))
	}
	released := s.release(limit)
	switch {
	case lost == nil && errors.Is(released, leasehold.ErrLost):
		lost = released
	case lost == nil && released != nil:
		s.app.say.text("%s could not be released, and becomes free when its lease expires: %s",
			s.hold, s.store.errorText(released))
	}
	switch {
	case s.stopping && lost == nil:
		late := &lateError{keys: s.hold.String()}
		if failed != nil {
			late.why = s.store.errorText(failed)
		}
		return exit(codeLost, late)
	case lost != nil:
		return exit(codeLost, &stoppedError{lost, s.stopping})
	case code != 0:
		return exit(code, nil)
	}
	return nil
}

// release releases the lock. A signal does not interrupt it: it takes at most
// limit, and without it others would have to wait for the lease to expire.
func (s *supervision) release(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.hold.release(ctx)
}

// stoppedError says that the lock was lost, and whether CMD was stopped.
type stoppedError struct {
	lost    error
	stopped bool
}

func (e *stoppedError) Error() string {
	if e.stopped {
		return e.lost.Error() + "; CMD was stopped"
	}
	return e.lost.Error() + "; CMD had already ended"
}

func (e *stoppedError) Unwrap() error { return e.lost }

// lateError says that CMD was stopped, and ended, before trust did: nobody else had
// been granted the lock, and a renewal may even have succeeded since.
type lateError struct {
	keys string
	why  string // the last renewal failed; "" if it did not
}

func (e *lateError) Error() string {
	if e.why == "" {
		return fmt.Sprintf("%s was not renewed before trust was about to end; CMD was stopped", e.keys)
	}
	return fmt.Sprintf("%s could not be renewed before trust was about to end; CMD was stopped: %s", e.keys, e.why)
}

// Is makes it match leasehold.ErrLost, as CMD was stopped.
func (e *lateError) Is(target error) bool { return target == leasehold.ErrLost }
