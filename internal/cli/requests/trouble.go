package requests

import (
	"cmp"
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

// Trouble describes requests that fail or are not answered. If lasts is zero, there is no
// trouble.
type Trouble struct {
	server    Server
	lasts     time.Duration
	why       string // reason for the failures; empty if no request has failed
	throttled bool
	unsent    bool // no request was sent, such as for lack of credentials
	nowhere   bool // DNS has no host of the server's name, and no request was answered before
	silent    bool // no answer has arrived, or none arrived in time
	answers   int  // number of requests that were answered before the trouble
}

// Kinds of news.
const (
	Throttled = "throttled" // every request is throttled
	NoAnswer  = "no_answer" // no request is answered, or none can be sent
	Answered  = "answered"  // the trouble has ended
)

// News returns the report of the trouble. Its line begins with the trouble itself. After
// that comes the reason, as far as it is known, or the advice if the advice says more.
func (t Trouble) News() News {
	n := News{Kind: NoAnswer, Lasts: t.lasts, Reason: cmp.Or(t.why, "no reply from "+t.server.Location), Lasting: t.nowhere}
	what, lasts := "no answer from "+t.server.name(), " for "+wording.Age(t.lasts)
	fault, isDisk := filefault.In(t.why)
	switch {
	case t.nowhere:
		what, lasts = "DNS has no host for DynamoDB in "+t.server.Location, ""
		n.Advice = "check the Region and the endpoint: --region, --endpoint-url, or the variable or profile that sets them"
	case t.throttled:
		n.Kind, what, n.Advice = Throttled, t.server.name()+" has throttled every request", decide.RaiseCapacity
	case t.unsent && !t.server.IsFile:
		what, n.Reason = "no credentials", cmp.Or(t.why, "no request was sent yet")
		n.Advice = "check what provides them: AWS_PROFILE, single sign-on, credential_process, the instance's metadata service"
	case isDisk:
		what = t.server.name() + " could not be written"
	case t.server.IsFile && !t.silent:
		n.Advice = "leasehold doctor says more"
	case t.server.IsFile:
		n.Advice = failure.FindLocker
	default:
		n.Advice = decide.CheckConnection
	}
	if isDisk {
		n.Advice = fault.String()
	}
	then := n.Reason + ": " + n.Advice
	if t.throttled || isDisk {
		then = n.Advice + ": " + n.Reason
	}
	n.Line = what + lasts + ": still trying: " + then
	return n
}

const (
	newsAfter  = 3 * time.Second // time without an answer before trouble is reported
	newsRepeat = time.Minute     // time between two reports
)

// News is a report of trouble, or of its end.
type News struct {
	Kind           string
	Lasts          time.Duration
	Reason, Advice string // what went wrong; advice for the user
	Line           string // the whole report as one line of text
	Lasting        bool   // waiting will probably not end the trouble
}

// Telling reports trouble that has lasted for a few seconds. It reports trouble at once if
// waiting will probably not end it. It reports trouble at most once a minute, and reports
// nothing during a pause. After it has reported trouble, it also reports the end of that
// trouble.
type Telling struct {
	mu     sync.Mutex // held during a report
	paused bool
	told   Trouble   // the reported trouble; its field lasts is zero if there is none
	at     time.Time // time when trouble was last reported; zero if never
	stop   func()
}

// news returns the report that is due, if any.
func (t *Telling) news(seen Trouble, now time.Time) (n News, due bool) {
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
	return seen.News(), true
}

// Tell starts to check every second for trouble with a server. It calls tell for each
// report.
func (h *Health) Tell(server func() Server, tell func(News)) *Telling {
	t := &Telling{}
	t.stop = seconds.Each(func() {
		seen := h.Trouble(server())
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.paused {
			return
		}
		if n, due := t.news(seen, time.Now()); due {
			tell(n)
		}
	})
	return t
}

// Pause begins a pause if begin is true, and ends it otherwise. During a pause nothing is
// reported. In both cases Telling forgets the trouble that it has reported, except for the
// time of the last report.
func (t *Telling) Pause(begin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused, t.told = begin, Trouble{}
}

// End stops the reports. If a report is in progress, End waits until it is complete.
func (t *Telling) End() { t.stop() }

// Health records since when no request has been answered. It is safe for concurrent use.
// The zero value is ready to use.
type Health struct {
	mu     sync.Mutex
	failed *Request  // the last request; nil if it was answered
	since  time.Time // time when the first of the consecutive failed requests began

	open       map[*Pending]struct{}
	answeredAt time.Time // time of the last answer; zero if no request was answered
	answers    int
}

// Pending is an operation, or the opening of a file that another process uses, that waits
// for an answer.
type Pending struct {
	of     *Health
	began  time.Time
	isSent bool // a request was sent; until then, the SDK may be loading credentials
}

// Begin records that something waits for an answer. The wait lasts until End is called.
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

// End records that the wait has ended.
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
	case r.cancelled(): // ignored: a request that the command cancelled says nothing about DynamoDB
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

// Answers returns the number of answered requests.
func (h *Health) Answers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// Trouble returns for how long the server has not answered, and why.
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
		if lasts := min(time.Since(p.began), time.Since(h.answeredAt)); lasts > t.lasts {
			t.lasts, t.unsent, t.silent = lasts, !p.isSent, true
		}
	}
	return t
}
