package process

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
)

// Job is CMD, and what stops it.
type Job struct {
	Cmd        *exec.Cmd
	Executable func() (string, error) // path of this program, which the gate and the watchdog run

	Stop       syscall.Signal // before trust ends, or when the lock is lost
	Grace      time.Duration  // from Stop to KILL; both are sent before trust ends
	Background string         // what becomes of processes that outlive CMD: BackgroundWait, ...
	Held       string         // how a variable begins that only the environment of CMD has; empty: none

	Resign <-chan struct{} // closed when CMD is to end although the lock is held; nil: never
}

// Lock is what CMD runs under: one lock, or several.
type Lock interface {
	String() string           // names the keys
	Are() string              // names them before what they are: "a is", or "a and b are"
	Context() context.Context // ends when it is lost
	Err() error               // nil until it is lost
	TrustedUntil() time.Time  // which each renewal puts off

	Event(kind string) say.Event // of it, for the user
}

// Ended says how CMD has ended.
type Ended struct {
	Code    int
	Stopped bool           // the lock is lost, or was about to be
	Signal  syscall.Signal // the last INT, TERM or QUIT from the user; 0: none
	Cut     bool           // leasehold was told to end before CMD, and what it has left running, had; or its parent ended

	Resigned bool // CMD was told to end although the lock was held
}

// supervision is CMD running under a lock.
type supervision struct {
	Job
	lock    Lock
	signals *Signals
	renewed <-chan struct{} // receives after each successful renewal
	say     *say.Messages

	self     string // path of this program; empty: it cannot be started
	watchdog *watchdogHandle
	deaths   int           // of watchdog processes
	until    time.Duration // of trust, as the watchdog was told last
	gate     *gate

	descent    watchdog.Descent
	background *background
	stopping   bool // the watchdog has told CMD to stop
	stopNow    bool // the watchdog was ordered to, before trust is about to end
	orphaned   bool // as the parent has ended

	endSignal syscall.Signal // the last INT, TERM or QUIT from the user; 0: none
	cut       bool           // the user has told CMD, or what it has left running, to end
	resigned  bool           // CMD was told to end although the lock is held
}

// Run runs CMD until it has ended, and what it has left running. An error says why CMD did
// not run, with the exit code for that.
func Run(j Job, lock Lock, renewed <-chan struct{}, signals *Signals, say *say.Messages) (Ended, error) {
	s := &supervision{
		Job: j, lock: lock, signals: signals, renewed: renewed, say: say,
		descent: watchdog.Descent{Supervisor: os.Getpid(), GroupOnly: j.Background == BackgroundKeep, Held: j.Held},
	}
	name := j.Cmd.Args[0] // before the gate has arguments of its own
	s.background = newBackground(j.Background)
	defer s.background.end()
	var err error
	s.self, err = j.Executable()
	if err == nil {
		s.watchdog, err = startWatchdog(s.self, s.Stop, s.Grace, s.descent)
	}
	if err != nil {
		say.Note("cannot start the watchdog process: CMD is stopped in time only while leasehold itself runs: %v", err)
		s.watchdog = startWatchdogInProcess(s.Stop, s.Grace, s.descent)
		s.self = ""
	}
	s.descent.Watchdog = s.watchdog.pid
	s.sendTrust()
	c, err := s.start()
	if err != nil {
		s.watchdog.end()
		return Ended{}, StartError(name, err)
	}
	s.supervise(c)
	if s.watchdog.end() {
		s.sayStopping()
	}
	if s.stopping {
		// Other processes of the group may still run: they must not continue
		// without the lock. The group's id cannot be reused before CMD is reaped.
		s.descent.Signal(c.group(), syscall.SIGKILL)
	}
	code := c.Reap()
	if err := s.gate.execError(code); err != nil {
		return Ended{}, StartError(name, err)
	}
	stopped := s.stopping && (!s.orphaned || s.lock.Err() != nil)
	return Ended{Code: code, Stopped: stopped, Signal: s.endSignal, Cut: s.cut || s.signals.end(), Resigned: s.resigned}, nil
}

// start starts CMD. CMD does not run before the watchdog has been told of its
// group. If this program cannot be started, the watchdog runs in this process and dies
// with it: then a gate would be of no use.
func (s *supervision) start() (*Child, error) {
	var c *Child
	var err error
	if s.self == "" {
		s.gate = noGate()
		c, err = Start(s.Cmd)
	} else {
		c, s.gate, err = startAtGate(s.self, s.Cmd)
	}
	if err != nil {
		return nil, err
	}
	s.orderStop(c)
	s.gate.open()
	return c, nil
}

// supervise passes signals on and watches the lock until CMD has ended, and what
// it has left running.
func (s *supervision) supervise(c *Child) {
	lost, orphaned := s.lock.Context().Done(), s.signals.Orphaned
	reports := s.watchdog.reports
	passed, exited := s.gate.passed, c.Exited
	var signals <-chan os.Signal // nil until CMD runs and can receive them
	var resign <-chan struct{}   // likewise
	for {
		select {
		case <-exited:
			exited = nil
			s.background.began(c, s.endSignal != 0)
			if s.outlived(c) {
				return
			}
		case <-s.background.deaths:
			s.background.lookIn(lookAfterEnd)
		case <-s.background.look.C:
			if s.outlived(c) && exited == nil {
				return
			}
		case <-passed:
			passed, signals, resign = nil, s.signals.C, s.Resign
		case sig := <-signals:
			if sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGQUIT {
				s.endSignal = sig.(syscall.Signal)
			}
			// This process may have been stopped and continued. If the lock was
			// lost meanwhile, the watchdog kills CMD: do not let it continue.
			if s.lock.Err() == nil {
				s.cut = s.cut || isEnd(sig)
				s.passOn(c, sig, exited == nil || c.hasEnded()) // else nobody would get it
			}
		case <-resign:
			resign = nil
			s.resign(c)
		case sig := <-c.Stops:
			if s.lock.Err() == nil {
				c.WasStopped(sig)
			}
		case <-s.renewed:
			s.sendTrust()
		case <-lost:
			lost = nil
			s.orderStopNow()
		case <-orphaned:
			orphaned = nil
			s.endSignal, s.cut, s.orphaned = syscall.SIGTERM, true, true
			s.orderStopNow()
		case report, ok := <-reports:
			switch {
			case !ok:
				s.replaceWatchdog(c)
				if s.stopNow {
					s.orderStopNow()
				}
				reports = s.watchdog.reports
			case report == watchdog.ReportSignalled, report == watchdog.ReportKilled:
				s.sayStopping()
			}
		}
	}
}

// resign ends CMD although the lock is held. If CMD has ended by itself, its exit code counts,
// and only what it has left running is stopped: whoever asked waits for that.
func (s *supervision) resign(c *Child) {
	s.say.Event(s.lock.Event(say.Stopping))
	select {
	case <-c.Exited:
		s.say.Text("%s: asked to step down when CMD had ended by itself: not campaigning again", s.lock)
		s.stopBackground(c, s.Stop)
	default:
		s.resigned = true
		s.say.Text("%s: asked to step down: stopping CMD, and waiting for it", s.lock)
		s.passOn(c, s.Stop, false)
	}
}

// passOn sends a signal to CMD or, once that has exited, to what it has left running.
func (s *supervision) passOn(c *Child, sig os.Signal, exited bool) {
	if exited {
		s.stopBackground(c, sig)
	} else {
		c.PassOn(sig)
	}
}
