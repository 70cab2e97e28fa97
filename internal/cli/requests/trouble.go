package requests

import (
	"cmp"
	"net"
	"slices"
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

// Trouble describes how long and why requests have failed, or have got no reply.
type Trouble struct {
	server    Server
	lasts     time.Duration // how long requests have failed or got no reply; zero if requests succeed
	why       string        // error of the last failed request; empty if no request has failed
	throttled bool
	advice    string // what to do if DynamoDB rejects every request, for example because the credentials have expired; otherwise empty
	unsent    bool   // true if no request could be sent, for example for lack of credentials
	nowhere   bool   // true if DNS does not know the server's host name, and no request was ever answered
	silent    bool   // true if no reply arrived in time, or none has arrived yet
	answers   int    // how many requests were answered before the trouble began
}

// Values of News.Kind.
const (
	Throttled = "throttled" // all requests are throttled
	NoAnswer  = "no_answer" // no request is answered, none can be sent, or all are rejected
	Answered  = "answered"  // requests are answered again
)

// News returns the report about t for the user. The report's text (Line) first describes the
// problem, for example that no answer arrives. The reason and the advice follow.
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
	case t.advice != "":
		what, n.Advice = t.server.name()+" has rejected every request", t.advice
	case t.unsent && !t.server.IsFile:
		what, n.Reason = "no credentials", cmp.Or(t.why, "no request was sent yet")
		n.Advice = "check what provides them: AWS_PROFILE, single sign-on, credential_process, the instance's metadata service"
	case isDisk:
		what, n.Advice = t.server.name()+" could not be written", fault.String()
	case t.server.IsFile && !t.silent:
		n.Advice = "leasehold doctor says more"
	case t.server.IsFile:
		n.Advice = failure.FindLocker
	default:
		n.Advice = decide.CheckConnection
	}
	then := n.Reason + ": " + n.Advice
	if t.throttled || isDisk {
		then = n.Advice + ": " + n.Reason
	}
	n.Line = what + lasts + ": still trying: " + then
	return n
}

const (
	newsAfter  = 3 * time.Second // how long requests must fail before leasehold reports it
	newsRepeat = time.Minute     // minimum time between two reports
)

// News is a report to the user: either requests fail, or they are answered again.
type News struct {
	Kind           string        // Throttled, NoAnswer or Answered
	Lasts          time.Duration // how long requests have failed
	Reason, Advice string        // why requests fail, and what the user can do
	Line           string        // the report as one line of text
	Lasting        bool          // true if the failures will probably not end by themselves
}

// Telling decides when to report trouble with requests: after newsAfter, or at once if the user
// must probably correct the cause. It reports trouble at most once every newsRepeat. When the
// trouble has ended, it reports that requests are answered again. It reports nothing while it is
// paused.
type Telling struct {
	mu     sync.Mutex // locked during a report
	paused bool
	told   Trouble   // last reported trouble; its field lasts is zero if no trouble was reported or it has ended
	at     time.Time // when trouble was last reported; zero if never
	stop   func()
}

// news returns the report that is due at the time now. If no report is due, the result "due" is
// false. The parameter "seen" is the current trouble.
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

// Tell checks h for trouble every second, in the background. It passes each report to the callback
// "tell". The reports mention the server that the callback "server" returns. The returned Telling
// can pause or end the reports.
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

// Pause pauses the reports if begin is true, and resumes them otherwise. In both cases, t forgets
// the reported trouble, so it will not report that requests are answered again. The next report of
// trouble still comes at least newsRepeat after the previous report.
func (t *Telling) Pause(begin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused, t.told = begin, Trouble{}
}

// End stops the reports. It waits until a report in progress is complete.
func (t *Telling) End() { t.stop() }

// Health measures for how long requests have failed or hung. It is safe for concurrent use.
// Its zero value is ready to use.
type Health struct {
	mu     sync.Mutex
	failed *Request  // the last request if it failed; nil if it was answered
	since  time.Time // start of the first request that failed after the last answered request

	open       []*Pending // waits in progress
	answeredAt time.Time  // when a request was last answered; zero if never
	answers    int
}

// Pending is a wait in progress: for the reply to an SDK operation, or for a local store's file
// that another process keeps locked.
type Pending struct {
	of     *Health
	began  time.Time
	isSent bool // false until the first request is sent: the SDK may still be loading credentials
}

// Begin records that a wait for a reply or for a locked file begins. The wait lasts until
// End of the returned Pending is called.
func (h *Health) Begin() *Pending {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &Pending{of: h, began: time.Now()}
	h.open = append(h.open, p)
	return p
}

// End records that the wait p has ended.
func (p *Pending) End() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.open = slices.DeleteFunc(p.of.open, func(other *Pending) bool { return other == p })
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
	case r.cancelled(): // ignored, because leasehold itself cancelled the request
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

// Answers returns how many requests were answered so far.
func (h *Health) Answers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// Trouble returns the current trouble with requests. Reports about this trouble name the
// given server.
func (h *Health) Trouble(server Server) Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := Trouble{server: server, answers: h.answers}
	if h.failed != nil {
		t.lasts, t.why, t.throttled = time.Since(h.since), visible.Message(h.failed.outcome(server)), h.failed.Throttled()
		if h.failed.isRefusal() {
			t.advice = decide.Advice(h.failed.Err)
		}
		t.unsent = decide.NotSigned(h.failed.Err)
		dns, is := failure.As[*net.DNSError](h.failed.Err)
		t.nowhere = h.answers == 0 && !t.unsent && is && dns.IsNotFound // if the Region does not exist in AWS, and sometimes for a short time after a host name was added to DNS
		t.silent = failure.IsTimeout(h.failed.Err)
		return t
	}
	for _, p := range h.open {
		if lasts := min(time.Since(p.began), time.Since(h.answeredAt)); lasts > t.lasts {
			t.lasts, t.unsent, t.silent = lasts, !p.isSent, true
		}
	}
	return t
}
