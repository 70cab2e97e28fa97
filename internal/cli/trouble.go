package cli

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// health knows since when no request was answered as it should be. It is safe
// for concurrent use.
type health struct {
	mu        sync.Mutex
	since     time.Time // zero: the last request was answered
	why       string
	throttles bool // it answers, but throttles

	open       map[*call]time.Time // calls under way, and when they began
	answeredAt time.Time           // zero: not yet
	answers    int
}

// call is one operation, such as UpdateItem: one request, or several if it is
// retried.
type call struct {
	sent bool            // a request was sent; before that, credentials are looked for
	keys []leasehold.Key // that it is about, as far as -v wants to know
}

// begin must be called when a call begins, and the function it returns when the
// call ends.
func (h *health) begin(c *call) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[*call]time.Time{}
	}
	h.open[c] = time.Now()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, c)
	}
}

// sending says that a call sends a request now.
func (h *health) sending(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.sent = true
}

func (h *health) failed(why string, at time.Time) { h.notDone(why, false, at) }

func (h *health) throttled(code string, at time.Time) { h.notDone(code, true, at) }

func (h *health) notDone(why string, throttles bool, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = at
	}
	h.why, h.throttles = failure.OneLine(why), throttles
}

func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.answeredAt = time.Time{}, time.Now()
	h.answers++
}

// trouble returns for how long and why no request has succeeded.
func (h *health) trouble() trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := trouble{answers: h.answers}
	if !h.since.IsZero() {
		t.lasts, t.why, t.throttled = time.Since(h.since), h.why, h.throttles
		return t
	}
	for c, began := range h.open {
		if began.Before(h.answeredAt) {
			began = h.answeredAt
		}
		if lasts := time.Since(began); lasts > t.lasts {
			t.lasts, t.unsent = lasts, !c.sent
		}
	}
	return t
}

// trouble says that requests fail, or are not answered. The zero value means that
// they do not.
type trouble struct {
	lasts     time.Duration
	why       string // empty: requests have not failed yet
	throttled bool
	unsent    bool // no request was sent yet
	answers   int  // how many requests were answered before
}

// server is what answers requests.
type server struct {
	location string // region, URL or file
	isFile   bool
}

func (s server) name() string {
	if s.isFile {
		return s.location
	}
	return "DynamoDB"
}

// Kinds of events about trouble.
const (
	eventThrottled = "throttled" // every request is throttled
	eventNoAnswer  = "no_answer" // no request is answered, or none can be sent
	eventAnswered  = "answered"  // that is over
)

func (t trouble) kind() string {
	if t.throttled {
		return eventThrottled
	}
	return eventNoAnswer
}

// what says what happens.
func (t trouble) what(s server) string {
	switch {
	case t.throttled:
		return s.name() + " has throttled every request for " + wording.Age(t.lasts)
	case t.unsent && !s.isFile:
		return "no credentials for " + wording.Age(t.lasts)
	}
	if _, isDisk := failure.DiskIn(t.why); isDisk {
		return s.name() + " could not be written for " + wording.Age(t.lasts)
	}
	return "no answer from " + s.name() + " for " + wording.Age(t.lasts)
}

// reason says why, as far as known.
func (t trouble) reason(s server) string {
	if t.unsent && !s.isFile {
		return "no request was sent yet"
	}
	return cmp.Or(t.why, "no reply from "+s.location)
}

// advice says what to do.
func (t trouble) advice(s server) string {
	if d, is := failure.DiskIn(t.why); is {
		return d.String()
	}
	switch {
	case t.throttled:
		return failure.AdviceThrottled
	case s.isFile:
		return "find the process that keeps the file locked: leasehold doctor or fuser(1) names it"
	case t.unsent:
		return "check what provides them: AWS_PROFILE, single sign-on, credential_process, the instance's metadata service"
	}
	return failure.AdviceUnreachable
}

// line is all of it, in one line.
func (t trouble) line(s server) string {
	if _, isDisk := failure.DiskIn(t.why); t.throttled || isDisk {
		return fmt.Sprintf("%s: still trying: %s: %s", t.what(s), t.advice(s), t.reason(s))
	}
	return fmt.Sprintf("%s: still trying: %s: %s", t.what(s), t.reason(s), t.advice(s))
}
