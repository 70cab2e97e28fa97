package process

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/watchdog"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// These modes determine how leasehold treats processes that CMD has started and that
// outlive CMD. Such processes must not continue unnoticed without the lock. By default
// leasehold holds the lock until they end, as flock(1) does.
const (
	BackgroundWait = "wait" // hold the lock until they end
	BackgroundStop = "stop" // stop them, then release the lock
	BackgroundKeep = "keep" // release the lock, and report the processes
)

// BackgroundModes lists all modes.
var BackgroundModes = []string{BackgroundWait, BackgroundStop, BackgroundKeep}

// These are the pauses before leasehold reads the list of processes that outlive CMD.
const (
	lookAfterEnd = 20 * time.Millisecond // pause after a process has ended, because other processes often end at the same time
	lookEvery    = time.Second           // pause if no process has died meanwhile
	lookOften    = 50 * time.Millisecond // pause on systems that send no signal when an orphan ends
)

// After sayAfter, leasehold reports that it waits for processes that outlive CMD. It
// repeats the report at intervals of repeatAfter.
const (
	sayAfter    = time.Second
	repeatAfter = time.Minute
)

// background follows the processes that outlive CMD.
type background struct {
	mode string

	deaths chan os.Signal // receives a signal when a child process ends; receives nothing on systems without such a signal
	look   *time.Timer    // fires at lookAt
	lookAt time.Time      // time of the next read of the processes; zero if none is planned

	since    time.Time // time when CMD ended; zero while CMD runs
	saidAt   time.Time // time when the processes were last reported; zero if never
	signaled bool
	blind    bool // leasehold cannot see the processes
}

// newBackground begins to receive deaths. It must be called before CMD runs.
func newBackground(mode string) *background {
	b := &background{mode: mode, deaths: make(chan os.Signal, 1), look: time.NewTimer(lookEvery)}
	b.look.Stop()
	adoptOrphans(b.deaths)
	return b
}

func (b *background) end() {
	b.look.Stop()
	signal.Stop(b.deaths)
}

// lookIn schedules a look at the processes after d, unless an earlier one is scheduled. An
// earlier one stays scheduled, so that frequent deaths cannot postpone it forever.
func (b *background) lookIn(d time.Duration) {
	at := time.Now().Add(d)
	if b.lookAt.IsZero() || at.Before(b.lookAt) {
		b.lookAt = at
		b.look.Reset(d)
	}
}

// began is called when CMD has ended. It begins the wait for the processes that outlive
// CMD. If the user has ended CMD, leasehold stops these processes (BackgroundStop) instead
// of waiting for them (BackgroundWait).
func (b *background) began(c *Child, byUser bool) {
	b.since = time.Now()
	if byUser && b.mode == BackgroundWait {
		b.mode = BackgroundStop
	}
	c.terminal.takeBack()
}

// stopBackground stops the processes that outlive CMD after a signal that ends leasehold.
// Many of these processes ignore Ctrl-C, since shells start background processes that way.
func (s *supervision) stopBackground(c *Child, sig os.Signal) {
	if !endsWait(sig) {
		return
	}
	b, number := s.background, sig.(syscall.Signal)
	s.Cut = true // true after each of these signals: leasehold now stops the processes instead of waiting for them
	s.descent.Signal(c.group(), number)
	b.mode, b.since = BackgroundStop, time.Now()
	b.lookIn(lookAfterEnd)
}

// outlived reads the processes that outlive CMD, and acts as the mode demands. It reports
// whether the lock may be released.
func (s *supervision) outlived(c *Child) (done bool) {
	b := s.background
	b.lookAt = time.Time{}
	left := s.outliving(c)
	if b.since.IsZero() {
		return false // CMD still runs: the call of outliving has reaped orphans, and no more is needed
	}
	if len(left) == 0 { // read again: a process may have been born during the first read
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
	case s.stopping: // the watchdog stops the processes
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

// outliving returns the running processes that CMD has started, and reaps orphans among
// them that have ended.
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

// names lists processes in one line.
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
