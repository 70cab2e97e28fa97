package cli

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// What leasehold does with processes that CMD has started and that outlive it.
// Without the lock they must not work on unnoticed: by default it is held until
// they end, as flock(1) does.
const (
	backgroundWait = "wait" // hold the lock until they end
	backgroundStop = "stop" // stop them, then release the lock
	backgroundKeep = "keep" // release the lock, and say so
)

var backgroundModes = []string{backgroundWait, backgroundStop, backgroundKeep}

const backgroundUsage = "what becomes of processes that outlive CMD, `MODE`: wait, stop, or keep"

// How often those who outlive CMD are looked for.
const (
	lookAfterEnd = 20 * time.Millisecond // after a process has ended: others often end with it
	lookEvery    = time.Second           // though nothing was heard of
	lookOften    = 50 * time.Millisecond // where the end of others' children is not heard of
)

// sayBackgroundAfter is how long those who outlive CMD may take to end before it
// is said that leasehold waits for them.
const sayBackgroundAfter = time.Second

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

// heardOfDeath makes somebody look soon. While CMD runs that is only to reap
// orphans, so it need not be at once.
func (b *background) heardOfDeath() {
	if b.since.IsZero() {
		b.lookIn(lookEvery / 10)
	} else {
		b.lookIn(lookAfterEnd)
	}
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
func (b *background) began(c *child, byUser bool) {
	b.since = time.Now()
	if byUser && b.mode == backgroundWait {
		b.mode = backgroundStop
	}
	c.terminal.takeBack()
}

// stopBackground stops those who outlive CMD, because the user ends leasehold.
// Many of them ignore Ctrl-C: a shell starts what it leaves behind so.
func (s *supervision) stopBackground(c *child, sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || !endsWait(number) {
		return
	}
	b := s.background
	s.descent.signal(c.group(), number)
	b.mode, b.since = backgroundStop, time.Now()
	b.lookIn(lookAfterEnd)
}

// outlived looks for processes that outlive CMD, and does with them what the user
// wants. It reports whether CMD's lock may be released.
func (s *supervision) outlived(c *child) (done bool) {
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
	if !seesDescent {
		next = lookOften
	}
	switch {
	case s.stopping: // the watchdog stops them
	case b.mode == backgroundKeep:
		s.sayBackground(left, fmt.Sprintf("CMD has ended: releasing %s, though %s: %s", s.hold, stillRuns(left), names(left)))
		return true
	case b.mode == backgroundStop && !b.signaled:
		s.sayBackground(left, fmt.Sprintf("CMD has ended: stopping what it left running: %s", names(left)))
		b.signaled = true
		s.descent.signal(c.group(), s.stop)
		next = min(s.grace, next)
	case b.mode == backgroundStop && now.Sub(b.since) >= s.grace:
		s.descent.signal(c.group(), syscall.SIGKILL)
	case b.mode == backgroundStop:
		next = min(next, s.grace-now.Sub(b.since))
	case now.Sub(b.since) < sayBackgroundAfter:
		next = min(next, sayBackgroundAfter-now.Sub(b.since))
	case b.saidAt.IsZero() || now.Sub(b.saidAt) >= repeatAfter:
		b.saidAt = now
		s.sayBackground(left, fmt.Sprintf("CMD has ended, but %s stays held: %s: %s (see --background)", s.hold, stillRuns(left), names(left)))
	}
	b.lookIn(next)
	return false
}

func (s *supervision) sayBackground(left []process, text string) {
	e := s.event(eventBackground)
	e.Processes = left
	s.app.say.tell(e, "%s", text)
}

// outliving returns the processes that CMD has started and that run, and reaps
// those orphans among them that have ended.
func (s *supervision) outliving(c *child) []process {
	all, err := s.descent.all(c.group())
	if err != nil && !s.background.blind {
		s.background.blind = true
		s.app.say.note("cannot see which processes CMD leaves running: %s is released when CMD ends: %v", s.hold, err)
	}
	return slices.DeleteFunc(all, func(p process) bool {
		if p.dead && p.direct && p.PID != c.group() {
			reapOrphan(p.PID)
		}
		return p.dead || p.PID == c.group() && !p.whole
	})
}

func stillRuns(left []process) string {
	return countOf(len(left), "process that it started still runs", "processes that it started still run")
}

// names names processes in one line.
func names(left []process) string {
	var all []string
	for _, p := range left {
		if p.whole {
			all = append(all, fmt.Sprintf("process group %d", p.PID))
		} else {
			all = append(all, fmt.Sprintf("%s (pid %d)", printable(p.Name), p.PID))
		}
	}
	return firstNames(all)
}
