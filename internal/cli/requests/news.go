package requests

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

const (
	newsAfter  = 3 * time.Second // without an answer
	newsRepeat = time.Minute     // between two about trouble
)

// News is what is told of trouble, or of its end.
type News struct {
	Kind           string
	Lasts          time.Duration
	Reason, Advice string // of trouble
	Line           string // all of it, for people
}

// teller tells of trouble once it has lasted for some seconds, at most once a minute,
// and of its end if it was told.
type teller struct {
	told Trouble   // lasts no time: none, or it is over
	at   time.Time // trouble was told last; zero: not yet
}

// news returns what is to be told now, if anything is.
func (t *teller) news(seen Trouble, now time.Time) (n News, due bool) {
	switch {
	case t.told.lasts > 0 && seen.answers != t.told.answers:
		n = News{Kind: Answered, Lasts: t.told.lasts + now.Sub(t.at)}
		n.Line = seen.server.name() + " answers again, after " + wording.Age(n.Lasts)
		t.told = Trouble{}
		return n, true
	case seen.lasts < newsAfter, !t.at.IsZero() && now.Sub(t.at) < newsRepeat:
		return News{}, false
	}
	t.told, t.at = seen, now
	return News{Kind: seen.kind(), Lasts: seen.lasts, Reason: seen.reason(), Advice: seen.advice(), Line: seen.Line()}, true
}

// Telling tells of trouble until it ends, except while it is paused.
type Telling struct {
	mu     sync.Mutex // held while it is told
	paused bool
	teller teller
	stop   func()
}

// Tell begins to tell of trouble with a server.
func (h *Health) Tell(server func() Server, tell func(News)) *Telling {
	t := &Telling{}
	t.stop = seconds.Each(func() { t.ask(h.Trouble(server()), tell) })
	return t
}

func (t *Telling) ask(seen Trouble, tell func(News)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused {
		return
	}
	if n, due := t.teller.news(seen, time.Now()); due {
		tell(n)
	}
}

// Pause begins or ends a pause. In one nothing is told, and trouble from before it is
// forgotten, but for when it was told.
func (t *Telling) Pause(begin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused, t.teller = begin, teller{at: t.teller.at}
}

// End returns when nothing is told any more.
func (t *Telling) End() { t.stop() }
