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

// Job is a CMD with its stop signal and other options.
type Job struct {
	Cmd        *exec.Cmd
	Executable func() (string, error) // path of this program, which the gate and the watchdog run

	Stop       syscall.Signal // signal sent to CMD before trust ends, or when the lock is lost
	Grace      time.Duration  // time from Stop to SIGKILL; both are sent before trust ends
	Background string         // mode for processes that outlive CMD: BackgroundWait, ...
	Held       string         // prefix NAME=VALUE that only the environment of CMD and its children has; empty if there is none

	Resign <-chan struct{} // closed by the caller to end CMD while the lock is still held; nil if not used
}

// Lock is the lock, or several locks, that CMD runs under.
type Lock interface {
	String() string           // returns the names of the keys
	Are() string              // names them with their verb: "a is", or "a and b are"
	Context() context.Context // returns a context that ends when a lock is lost
	Err() error               // returns nil unless a lock is lost
	TrustedUntil() time.Time  // returns the time until which the lock is trusted; each renewal moves it to a later time

	Event(kind string) say.Event // returns an event of the lock for the user
}

// Ended describes the end of CMD.
type Ended struct {
	Code    int
	Stopped bool           // CMD was stopped because the lock was lost, or was about to be lost
	Signal  syscall.Signal // the last INT, TERM or QUIT from the user; zero if none came
	Cut     bool           // the user, or the end of the parent process, ended leasehold while CMD or one of its processes was still running

	Resigned bool // CMD was ended through Resign, while the lock was still held
}

// supervision is the state of Run: a CMD that runs under a lock.
type supervision struct {
	Job
	Ended   // description of CMD's end, as far as it is known
	lock    Lock
	signals *Signals
	renewed <-chan struct{} // receives a value after each successful renewal
	say     *say.Messages

	self     string // path of this program; empty if it cannot be started
	watchdog *watchdogHandle
	deaths   int           // number of watchdog processes that have died
	until    time.Duration // end of trust that was last sent to the watchdog, as a reading of boottime
	gate     *gate

	descent    watchdog.Descent
	background *background
	stopping   bool // the watchdog has sent the stop signal to CMD
	stopNow    bool // the watchdog was ordered to stop CMD at once, although trust may last longer
	orphaned   bool // stopNow was set because the parent has ended
}

// Run runs CMD until it and the processes that it left running have ended. Run returns an
// error only if CMD did not run. The error carries leasehold's exit code.
func Run(j Job, lock Lock, renewed <-chan struct{}, signals *Signals, say *say.Messages) (Ended, error) {
	s := &supervision{
		Job: j, lock: lock, signals: signals, renewed: renewed, say: say,
		descent: watchdog.Descent{Supervisor: os.Getpid(), GroupOnly: j.Background == BackgroundKeep, Held: j.Held},
	}
	name := j.Cmd.Args[0] // read before the gate changes the arguments
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
		// Other processes of CMD's group may still run, but must not continue without the
		// lock. CMD has not been reaped yet, so no other group can have the same id.
		s.descent.Signal(c.group(), syscall.SIGKILL)
	}
	s.Code = c.Reap()
	if err := s.gate.execError(s.Code); err != nil {
		return Ended{}, StartError(name, err)
	}
	s.Stopped = s.stopping && (!s.orphaned || s.lock.Err() != nil)
	s.Cut = s.Cut || s.signals.end()
	return s.Ended, nil
}

// start starts CMD. The watchdog receives CMD's group before CMD runs. If this program
// cannot be started, the watchdog runs in this process and dies with it. A gate would be
// useless in that case, so start uses none.
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

// supervise passes signals on and watches the lock until CMD and the processes that it left
// running have ended.
func (s *supervision) supervise(c *Child) {
	lost, orphaned := s.lock.Context().Done(), s.signals.Orphaned
	reports := s.watchdog.reports
	passed, exited := s.gate.passed, c.Exited
	var signals <-chan os.Signal // nil until CMD runs and can receive the signals
	var resign <-chan struct{}   // nil until CMD runs
	for {
		select {
		case <-exited:
			exited = nil
			s.background.began(c, s.Signal != 0)
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
				s.Signal = sig.(syscall.Signal)
			}
			// This process may have been stopped and continued. If the lock was lost
			// meanwhile, the watchdog kills CMD. A signal that continues CMD must not be
			// passed on then.
			if s.lock.Err() == nil {
				s.Cut = s.Cut || isEnd(sig)
				s.passOn(c, sig, exited == nil || c.hasEnded()) // if CMD has ended, the signal goes to the processes that it left running
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
			s.Signal, s.Cut, s.orphaned = syscall.SIGTERM, true, true
			s.orderStopNow()
		case _, acted := <-reports:
			if acted {
				s.sayStopping()
				continue
			}
			s.replaceWatchdog(c)
			if s.stopNow {
				s.orderStopNow()
			}
			reports = s.watchdog.reports
		}
	}
}

// resign stops CMD, so that the lock can be released although it is not lost. If CMD has
// already ended by itself, leasehold uses CMD's exit code, and resign stops only the
// processes that CMD left running. The client that asked for the resignation waits until
// these processes have ended.
func (s *supervision) resign(c *Child) {
	s.say.Event(s.lock.Event(say.Stopping))
	select {
	case <-c.Exited:
		s.say.Text("%s: asked to step down when CMD had ended by itself: not campaigning again", s.lock)
		s.stopBackground(c, s.Stop)
	default:
		s.Resigned = true
		s.say.Text("%s: asked to step down: stopping CMD, and waiting for it", s.lock)
		s.passOn(c, s.Stop, false)
	}
}

// passOn sends a signal to CMD or, once CMD has exited, to the processes that it left running.
func (s *supervision) passOn(c *Child, sig os.Signal, exited bool) {
	if exited {
		s.stopBackground(c, sig)
	} else {
		c.PassOn(sig)
	}
}
