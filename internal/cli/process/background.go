package process

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Values of --background. They determine what leasehold does about processes that CMD has
// started and that outlive CMD. Such a process should not continue unnoticed without the
// lock. By default, leasehold holds the lock until all of them have ended, as flock(1) does.
const (
	BackgroundWait = "wait" // hold the lock until these processes have ended
	BackgroundStop = "stop" // stop these processes, then release the lock
	BackgroundKeep = "keep" // release the lock immediately, and report these processes
)

// BackgroundModes lists all values of --background.
var BackgroundModes = []string{BackgroundWait, BackgroundStop, BackgroundKeep}

// How long leasehold pauses before it checks again which processes outlive CMD.
const (
	lookAfterEnd = 20 * time.Millisecond // pause after a process has ended: other processes often end at the same time
	lookEvery    = time.Second           // pause while no process ends
	lookOften    = 50 * time.Millisecond // pause on operating systems that do not signal the end of an orphan
)

// If processes outlive CMD, leasehold prints after sayAfter that it waits for them. It
// repeats this every repeatAfter.
const (
	sayAfter    = time.Second
	repeatAfter = time.Minute
)

// background tracks the processes that CMD has started and that outlive CMD.
type background struct {
	mode string

	deaths chan os.Signal // receives SIGCHLD when a child process ends; on systems other than Linux it receives nothing
	look   *time.Timer    // fires at lookAt
	lookAt time.Time      // when the processes are read next; zero if no read is scheduled

	since    time.Time // when CMD ended; zero while CMD runs
	saidAt   time.Time // when the processes were last reported; zero if never
	signaled bool      // true if the stop signal was sent to the processes (BackgroundStop)
	blind    bool      // true if leasehold cannot list the processes
}

// lookIn schedules the next read of the process list for d from now, unless an earlier read is
// already scheduled. So a series of exits cannot postpone the read forever.
func (b *background) lookIn(d time.Duration) {
	at := time.Now().Add(d)
	if b.lookAt.IsZero() || at.Before(b.lookAt) {
		b.lookAt = at
		b.look.Reset(d)
	}
}

// began is called when CMD has ended. It begins the wait for the processes that outlive CMD. The
// parameter "asked" is true if leasehold was asked to exit or step down while CMD ran. The mode
// BackgroundWait then changes to BackgroundStop, which stops these processes.
func (b *background) began(c *Child, asked bool) {
	b.since = time.Now()
	if asked && b.mode == BackgroundWait {
		b.mode = BackgroundStop
	}
	c.terminal.takeBack()
}

// stopBackground forwards sig to the processes that outlive CMD. It is called if leasehold shall
// exit or step down after CMD has ended. The mode BackgroundWait changes to BackgroundStop, because
// a shell's background processes would ignore a forwarded Ctrl-C.
func (s *supervision) stopBackground(c *Child, sig os.Signal) {
	b, number := s.background, sig.(syscall.Signal)
	s.Cut = true // set for each such signal, because leasehold now stops processes that it would otherwise wait for
	s.descent.Signal(c.group(), number)
	if b.mode != BackgroundKeep {
		b.mode = BackgroundStop
	}
	b.since = time.Now()
	b.lookIn(lookAfterEnd)
}

// outlived finds the processes that outlive CMD. It stops, reports or awaits these
// processes, as s.background.mode requires. It returns true if the lock may be released.
func (s *supervision) outlived(c *Child) (done bool) {
	b := s.background
	b.lookAt = time.Time{}
	left := s.outliving(c)
	if b.since.IsZero() {
		return false // CMD still runs: outliving was called only to reap orphans that have ended
	}
	if len(left) == 0 { // read twice, because the first read may miss a process that was started meanwhile
		left = s.outliving(c)
	}
	if len(left) == 0 {
		return true
	}
	now := time.Now()
	next := lookEvery
	if !watchdog.SeesDescent {
		next = lookOften
	}
	switch {
	case s.stopping && (b.mode != BackgroundKeep || slices.ContainsFunc(left, c.inGroup)): // the watchdog is already stopping these processes
	case b.mode == BackgroundKeep:
		s.sayOutlived(left, fmt.Sprintf("CMD has ended: releasing %s, though %s: %s", s.lock, stillRuns(left), names(left)))
		return true
	case b.mode == BackgroundStop && !b.signaled:
		s.sayOutlived(left, fmt.Sprintf("CMD has ended: stopping what it left running: %s", names(left)))
		b.signaled = true
		s.descent.Signal(c.group(), s.Stop)
		next = min(s.Grace, next)
	case b.mode == BackgroundStop && now.Sub(b.since) >= s.Grace:
		s.descent.Signal(c.group(), syscall.SIGKILL)
	case b.mode == BackgroundStop:
		next = min(next, durations.Less(s.Grace, now.Sub(b.since)))
	case now.Sub(b.since) < sayAfter:
		next = min(next, durations.Less(sayAfter, now.Sub(b.since)))
	case b.saidAt.IsZero() || now.Sub(b.saidAt) >= repeatAfter:
		b.saidAt = now
		s.sayOutlived(left, fmt.Sprintf("CMD has ended, but %s stays held: %s: %s (see --background)", s.lock, stillRuns(left), names(left)))
	}
	b.lookIn(next)
	return false
}

// outliving returns the processes of CMD that still run. It also reaps the orphans that
// have ended.
func (s *supervision) outliving(c *Child) []watchdog.Process {
	all, err := s.descent.All(c.group())
	if err != nil && !s.background.blind {
		s.background.blind = true
		s.say.Note("cannot see which processes CMD leaves running: %s released when CMD ends: %v", s.lock.Are(), err)
	}
	return slices.DeleteFunc(all, func(p watchdog.Process) bool {
		if p.Dead && p.Direct && p.PID != c.group() {
			reapOrphan(p.PID)
		}
		return p.Dead || p.PID == c.group() && !p.Whole
	})
}

func (s *supervision) sayOutlived(left []watchdog.Process, text string) {
	e := s.lock.Event(say.Background)
	for _, p := range left {
		e.Processes = append(e.Processes, say.Process{PID: p.PID, Name: p.Name})
	}
	s.say.Tell(e, "%s", text)
}

func stillRuns(left []watchdog.Process) string {
	return wording.Count(len(left), "process that it started still runs", "processes that it started still run")
}

// names returns the names and ids of the given processes, in one line.
func names(left []watchdog.Process) string {
	var all []string
	for _, p := range left {
		if p.Whole {
			all = append(all, fmt.Sprintf("process group %d", p.PID))
		} else {
			all = append(all, fmt.Sprintf("%s (pid %d)", visible.Word(p.Name), p.PID))
		}
	}
	return wording.List(all)
}
