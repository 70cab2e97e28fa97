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

// What leasehold does with processes that CMD has started and that outlive it.
// Without the lock they must not work on unnoticed: by default it is held until
// they end, as flock(1) does.
const (
	BackgroundWait = "wait" // hold the lock until they end
	BackgroundStop = "stop" // stop them, then release the lock
	BackgroundKeep = "keep" // release the lock, and say so
)

// BackgroundModes are all of them.
var BackgroundModes = []string{BackgroundWait, BackgroundStop, BackgroundKeep}

// How often those who outlive CMD are looked for.
const (
	lookAfterEnd = 20 * time.Millisecond // after a process has ended: others often end with it
	lookEvery    = time.Second           // though nothing was heard of
	lookOften    = 50 * time.Millisecond // where the end of others' children is not heard of
)

// How long those who outlive CMD may take to end before it is said that leasehold waits
// for them, and until it is said again.
const (
	sayAfter    = time.Second
	repeatAfter = time.Minute
)

// background follows the processes that outlive CMD.
type background struct {
	mode string

	deaths chan os.Signal // of child processes; never, where there is no such signal
	look   *time.Timer    // when to look for them
	lookAt time.Time      // when that is; zero: not planned

	since    time.Time // CMD has ended; zero: it runs
	saidAt   time.Time // when they were named; zero: not yet
	signaled bool
	blind    bool // they cannot be seen
}

// newBackground begins to listen for deaths. CMD must not run yet.
func newBackground(mode string) *background {
	b := &background{mode: mode, deaths: make(chan os.Signal, 1), look: time.NewTimer(lookEvery)}
	b.look.Stop()
	adoptOrphans()
	notifyDeaths(b.deaths)
	return b
}

func (b *background) end() {
	b.look.Stop()
	ignoreDeaths(b.deaths)
}

// lookIn makes somebody look after a time, unless they do so earlier anyway: one
// death after the other must not put it off.
func (b *background) lookIn(d time.Duration) {
	at := time.Now().Add(d)
	if b.lookAt.IsZero() || at.Before(b.lookAt) {
		b.lookAt = at
		b.look.Reset(d)
	}
}

// began begins to wait for those who outlive CMD, which has ended: or to stop
// them, if the user has ended it.
func (b *background) began(c *Child, byUser bool) {
	b.since = time.Now()
	if byUser && b.mode == BackgroundWait {
		b.mode = BackgroundStop
	}
	c.terminal.takeBack()
}

// stopBackground stops those who outlive CMD, because the user ends leasehold.
// Many of them ignore Ctrl-C: a shell starts what it leaves behind so.
func (s *supervision) stopBackground(c *Child, sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || !endsWait(number) {
		return
	}
	b := s.background
	s.cut = true // by whatever signal: they are stopped
	s.descent.Signal(c.group(), number)
	b.mode, b.since = BackgroundStop, time.Now()
	b.lookIn(lookAfterEnd)
}

// outlived looks for processes that outlive CMD, and does with them what the user
// wants. It reports whether CMD's lock may be released.
func (s *supervision) outlived(c *Child) (done bool) {
	b := s.background
	b.lookAt = time.Time{}
	left := s.outliving(c)
	if b.since.IsZero() {
		return false // CMD runs: that was to reap orphans
	}
	if len(left) == 0 { // once more: one may have been born while others were read
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
	case s.stopping: // the watchdog stops them
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

// outliving returns the processes that CMD has started and that run, and reaps
// those orphans among them that have ended.
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

// names names processes in one line.
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
