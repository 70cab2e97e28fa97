package process

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
)

// Job describes how to run CMD and how to stop it.
type Job struct {
	Cmd        *exec.Cmd
	Executable func() (string, error) // returns the path of this executable, which the gate and the watchdog run

	Stop       syscall.Signal // signal that asks CMD to exit; sent before trust ends, or when the lock is lost
	Grace      time.Duration  // time from Stop to SIGKILL, which is sent when trust ends at the latest
	Background string         // value of --background, such as BackgroundWait
	Held       string         // beginning of an entry NAME=VALUE that only the environment of CMD and its descendants has; may be empty

	Resign <-chan struct{} // closed by the caller to stop CMD although the lock is still held; may be nil
}

// Lock is the lock, or several locks, that must be held while CMD runs.
type Lock interface {
	String() string           // returns the names of the keys, such as "a and b"
	Are() string              // returns the names with a verb: "a is", or "a and b are"
	Context() context.Context // returns a context that is cancelled when one of the locks is lost
	Err() error               // returns the error of a lost lock; nil if no lock is lost
	TrustedUntil() time.Time  // returns the time at which trust ends; each renewal makes it later

	Event(kind string) say.Event // returns an event about the lock
}

// Ended describes how CMD ended.
type Ended struct {
	Code    int
	Stopped bool           // true if CMD was stopped because the lock was lost, or trust in it was about to end
	Signal  syscall.Signal // last SIGINT, SIGTERM or SIGQUIT that leasehold received; zero if none
	Cut     bool           // true if a signal, or the end of the parent process, ended leasehold while CMD or its processes still ran

	Resigned bool // true if CMD was stopped through Job.Resign, while the lock was still held
}

// supervision is the state of Run, which runs one CMD under a lock.
type supervision struct {
	Job
	Ended   // what is known so far about how CMD ended
	lock    Lock
	signals *Signals
	renewed <-chan struct{} // receives a value after each successful renewal
	say     *say.Messages

	self     string // path of this executable; empty if it cannot be started again
	watchdog *watchdogHandle
	deaths   int           // how many watchdog processes have died
	until    time.Duration // end of trust as last sent to the watchdog, by the clock of package boottime
	gate     *gate
	lost     error // error of the lock if it was lost before CMD began, so that CMD never runs; otherwise nil

	descent    watchdog.Descent
	background *background
	stopping   bool // true if the watchdog has sent the stop signal to CMD
	orphaned   bool // true if the watchdog was ordered to stop CMD because the parent process has ended
}

// Run runs CMD, and returns when CMD and the processes that outlive it have ended. It
// returns an error only if CMD did not run. The error contains the exit code for leasehold.
func Run(j Job, lock Lock, renewed <-chan struct{}, signals *Signals, say *say.Messages) (Ended, error) {
	s := &supervision{
		Job: j, lock: lock, signals: signals, renewed: renewed, say: say,
		descent:    watchdog.Descent{Supervisor: os.Getpid(), GroupOnly: j.Background == BackgroundKeep, Held: j.Held},
		background: &background{mode: j.Background, deaths: make(chan os.Signal, 1), look: time.NewTimer(lookEvery)},
	}
	s.background.look.Stop()
	adoptOrphans(s.background.deaths)
	name := j.Cmd.Args[0] // read here, because startAtGate changes the arguments
	defer signal.Stop(s.background.deaths)
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
		// Kill the processes of CMD that still run, because they must not run without the
		// lock. CMD has not been reaped yet, so no other process group can have CMD's id.
		s.descent.Signal(c.group(), syscall.SIGKILL)
	}
	s.Code = c.Reap()
	if err := cmp.Or(s.lost, s.gate.execError(s.Code)); err != nil {
		return Ended{}, StartError(name, err)
	}
	s.Stopped = s.stopping && (!s.orphaned || s.lock.Err() != nil)
	s.Cut = s.Cut || s.signals.end()
	return s.Ended, nil
}

// start starts CMD. Normally CMD waits at the gate until start has sent the id of CMD's process
// group to the watchdog process. If the lock is lost by then, perhaps while this process was
// suspended, the gate stays closed, and the watchdog kills the child. If s.self is empty, the
// watchdog is a goroutine of this process. A gate would not help then: the goroutine is killed with
// this process. Without a gate, CMD is not started if the lock is lost already.
func (s *supervision) start() (c *Child, err error) {
	start := startAtGate
	if s.self == "" {
		start = startDirectly
	}
	if err = s.lock.Err(); err != nil {
		return nil, err
	}
	if c, s.gate, err = start(s.self, s.Cmd); err != nil {
		return nil, err
	}
	s.orderStop(c)
	if s.gate.conn != nil {
		if s.lost = s.lock.Err(); s.lost == nil {
			s.gate.open()
		}
	}
	return c, nil
}

// supervise forwards signals to CMD, and makes the watchdog stop CMD if the lock is lost.
// It returns when CMD and the processes that outlive it have ended.
func (s *supervision) supervise(c *Child) {
	lost, orphaned := s.lock.Context().Done(), s.signals.Orphaned
	passed, exited := s.gate.passed, c.Exited
	var signals <-chan os.Signal // nil until CMD runs, because the child at the gate must not receive signals for CMD
	var resign <-chan struct{}   // nil until CMD runs, for the same reason
	for {
		select {
		case <-exited:
			exited = nil
			s.background.began(c, s.Signal != 0 || s.Resigned)
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
			// Forward no signals once the lock is lost. If the lock was lost while this process
			// was suspended, a signal such as SIGCONT could continue CMD before the watchdog
			// kills it.
			if s.lock.Err() == nil {
				s.Cut = s.Cut || isEnd(sig)
				if exited != nil && !c.hasEnded() {
					c.PassOn(sig)
				} else if endsWait(sig) { // only the processes that outlive CMD can receive the signal
					s.stopBackground(c, sig)
				}
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
			s.watchdog.order(watchdog.OrderStop, 0)
		case <-orphaned:
			orphaned = nil
			s.Signal, s.Cut, s.orphaned = syscall.SIGTERM, true, true
			s.watchdog.order(watchdog.OrderStop, 0)
		case _, acted := <-s.watchdog.reports:
			if acted {
				s.sayStopping()
				continue
			}
			s.replaceWatchdog(c)
			if s.orphaned || s.lock.Err() != nil {
				s.watchdog.order(watchdog.OrderStop, 0)
			}
		}
	}
}

// resign is called when another client, as with "elect --step-down", has asked this leader to
// step down. It stops CMD, so that the lock can be released. If CMD has already ended by itself,
// it stops only the processes that outlive CMD.
func (s *supervision) resign(c *Child) {
	s.say.Event(s.lock.Event(say.Stopping))
	select {
	case <-c.Exited:
		s.say.Text("%s: asked to step down when CMD had ended by itself: not campaigning again", s.lock)
		s.stopBackground(c, s.Stop)
	default:
		s.Resigned = true
		s.say.Text("%s: asked to step down: stopping CMD, and waiting for it", s.lock)
		c.PassOn(s.Stop)
	}
}
