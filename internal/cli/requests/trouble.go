package requests

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/filefault"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Trouble says that requests fail, or are not answered. If it lasts no time, they do not.
type Trouble struct {
	server    Server
	lasts     time.Duration
	why       string // empty: requests have not failed yet
	throttled bool
	unsent    bool // no request was sent yet
	nowhere   bool // DNS has no such host, and no request was answered before
	silent    bool // there is no answer yet, or there was none in time
	answers   int  // how many requests were answered before
}

// Kinds of news.
const (
	Throttled = "throttled" // every request is throttled
	NoAnswer  = "no_answer" // no request is answered, or none can be sent
	Answered  = "answered"  // that is over
)

func (t Trouble) kind() string {
	if t.throttled {
		return Throttled
	}
	return NoAnswer
}

// what says what happens.
func (t Trouble) what() string {
	switch {
	case t.nowhere:
		return "DNS has no host for DynamoDB in " + t.server.Location
	case t.throttled:
		return t.server.name() + " has throttled every request for " + wording.Age(t.lasts)
	case t.unsent && !t.server.IsFile:
		return "no credentials for " + wording.Age(t.lasts)
	}
	if _, isDisk := filefault.In(t.why); isDisk {
		return t.server.name() + " could not be written for " + wording.Age(t.lasts)
	}
	return "no answer from " + t.server.name() + " for " + wording.Age(t.lasts)
}

// reason says why, as far as known.
func (t Trouble) reason() string {
	if t.unsent && !t.server.IsFile {
		return cmp.Or(t.why, "no request was sent yet")
	}
	return cmp.Or(t.why, "no reply from "+t.server.Location)
}

// advice says what to do.
func (t Trouble) advice() string {
	if fault, is := filefault.In(t.why); is {
		return fault.String()
	}
	switch {
	case t.nowhere:
		return "check the Region and the endpoint: --region, --endpoint-url, or the variable or profile that sets them"
	case t.throttled:
		return decide.RaiseCapacity
	case t.server.IsFile && !t.silent:
		return "leasehold doctor says more"
	case t.server.IsFile:
		return failure.FindLocker
	case t.unsent:
		return "check what provides them: AWS_PROFILE, single sign-on, credential_process, the instance's metadata service"
	}
	return decide.CheckConnection
}

// Line is all of it, in one line.
func (t Trouble) Line() string {
	if _, isDisk := filefault.In(t.why); t.throttled || isDisk {
		return fmt.Sprintf("%s: still trying: %s: %s", t.what(), t.advice(), t.reason())
	}
	return fmt.Sprintf("%s: still trying: %s: %s", t.what(), t.reason(), t.advice())
}

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
	Lasting        bool   // it will hardly pass
}

// teller tells of trouble once it has lasted for some seconds, or at once if it will hardly
// pass. It does so at most once a minute, and tells of the end of trouble that it has told.
type teller struct {
	told Trouble   // lasts no time: none, or it is over
	at   time.Time // trouble was told last; zero: not yet
}

// news returns what is to be told now, if anything is.
func (t *teller) news(seen Trouble, now time.Time) (n News, due bool) {
	switch {
	case t.told.lasts > 0 && seen.answers != t.told.answers:
		n = News{Kind: Answered, Lasts: durations.Sum(t.told.lasts, now.Sub(t.at))}
		n.Line = seen.server.name() + " answers again, after " + wording.Age(n.Lasts)
		t.told = Trouble{}
		return n, true
	case seen.lasts < newsAfter && !seen.nowhere, !t.at.IsZero() && now.Sub(t.at) < newsRepeat:
		return News{}, false
	}
	t.told, t.at = seen, now
	return News{Kind: seen.kind(), Lasts: seen.lasts, Reason: seen.reason(), Advice: seen.advice(), Line: seen.Line(), Lasting: seen.nowhere}, true
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
	t.stop = seconds.Each(func() {
		seen := h.Trouble(server())
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.paused {
			return
		}
		if n, due := t.teller.news(seen, time.Now()); due {
			tell(n)
		}
	})
	return t
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

// Health knows since when no request was answered. It is safe for concurrent use. The
// zero value has not seen any.
type Health struct {
	mu     sync.Mutex
	failed *Request  // the last; nil: the last request was answered
	since  time.Time // the first of those that have failed in a row began

	open       map[*Pending]struct{}
	answeredAt time.Time // zero: not yet
	answers    int
}

// Pending is something that waits for an answer: an operation, or the opening of a file
// that another process uses.
type Pending struct {
	of     *Health
	began  time.Time
	isSent bool // a request was sent; before that, credentials are looked for
}

// Begin says that somebody waits for an answer, until End is called.
func (h *Health) Begin() *Pending {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[*Pending]struct{}{}
	}
	p := &Pending{of: h, began: time.Now()}
	h.open[p] = struct{}{}
	return p
}

// End says that nobody waits any more.
func (p *Pending) End() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	delete(p.of.open, p)
}

func (p *Pending) sent() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.isSent = true
}

func (h *Health) saw(r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.cancelled(): // that says nothing about DynamoDB
	case r.answered():
		h.failed, h.answeredAt = nil, time.Now()
		h.answers++
	default:
		if h.failed == nil {
			h.since = r.Began
		}
		h.failed = &r
	}
}

// Answers is how many requests were answered.
func (h *Health) Answers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// Trouble says for how long and why that server has not answered.
func (h *Health) Trouble(of Server) Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := Trouble{server: of, answers: h.answers}
	if h.failed != nil {
		t.lasts, t.why, t.throttled = time.Since(h.since), visible.Message(h.failed.outcome(of)), h.failed.Throttled()
		t.unsent = decide.NotSigned(h.failed.Err)
		t.nowhere = h.answers == 0 && !t.unsent && h.failed.noSuchHost()
		t.silent = failure.IsTimeout(h.failed.Err)
		return t
	}
	for p := range h.open {
		began := p.began
		if began.Before(h.answeredAt) {
			began = h.answeredAt
		}
		if lasts := time.Since(began); lasts > t.lasts {
			t.lasts, t.unsent, t.silent = lasts, !p.isSent, true
		}
	}
	return t
}
