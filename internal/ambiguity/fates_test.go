package ambiguity

import (
	"bytes"
	"net/http"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// fate is what the simulated network does to one request of a trial.
type fate struct {
	name, short string
	answered    bool // if set, a reply tells the client whether the request was applied
	fault       func(x *trial, r *lab.Request) (*http.Response, error)
}

// arrivesLate is the delay with which a late request arrives.
const arrivesLate = 5 * time.Second

var fates = []fate{
	{"applied and answered", "answered", true, func(_ *trial, r *lab.Request) (*http.Response, error) { return r.Send() }},
	{"applied, and the reply is lost", "reply lost", false, func(_ *trial, r *lab.Request) (*http.Response, error) { return lab.LoseReply(r) }},
	{"lost before it arrives", "lost", false, drop},
	{"lost from sight, and arrives 5 s later", "late", false, func(_ *trial, r *lab.Request) (*http.Response, error) {
		return lab.Delayed(arrivesLate)(r)
	}},
	{"applied and answered, and a second copy arrives 5 s later", "twice", true, func(_ *trial, r *lab.Request) (*http.Response, error) {
		res, err := r.Send()
		_, _ = lab.Delayed(arrivesLate)(r)
		return res, err
	}},
	{"applied twice at once, and the second copy is answered", "doubled", true, func(_ *trial, r *lab.Request) (*http.Response, error) {
		if _, err := r.Send(); err != nil {
			return nil, err
		}
		return r.Send()
	}},
	{"refused: access denied", "refused", true, refuse("AccessDeniedException")},
	{"throttled", "throttled", true, refuse("ProvisionedThroughputExceededException")},
	{"in conflict with a transaction", "conflict", true, func(_ *trial, r *lab.Request) (*http.Response, error) { return lab.Conflict(r.Call), nil }},
	{"answered, after another's write", "overtaken", true, func(x *trial, r *lab.Request) (*http.Response, error) {
		x.op.overtake(x, r)
		return r.Send()
	}},
}

// silence is a fate that drops a request and all later requests of the trial, until the
// operation has returned.
var silence = fate{"silence: nothing gets through any more until the call has returned", "silence", false, drop}

func drop(*trial, *lab.Request) (*http.Response, error) { return nil, lab.ErrReset }

func refuse(code string) func(*trial, *lab.Request) (*http.Response, error) {
	return func(*trial, *lab.Request) (*http.Response, error) { return lab.Refusal(400, code), nil }
}

// network is the fault of the client's wire. It gives the first requests of the
// operation the fates of the trial.
func (x *trial) network(r *lab.Request) (*http.Response, error) {
	if !x.fits(r.Call) {
		// If a request without a fate is sent at the same instant as a request with one, it
		// arrives later.
		time.Sleep(time.Millisecond)
	}
	x.mu.Lock()
	var f fate
	switch {
	case !x.armed:
		f = fates[0]
	case x.silent:
		f = silence
	case x.fits(r.Call) && x.next < len(x.fates):
		f = x.fates[x.next]
		x.next++
		x.silent = f.short == silence.short
		x.unanswered = x.unanswered || !f.answered
	default:
		f = fates[0]
	}
	if f.short == silence.short && x.fits(r.Call) {
		x.unanswered = true
	}
	x.mu.Unlock()
	return f.fault(x, r)
}

// fits reports whether the request is one of the operation's requests, which
// have fates.
func (x *trial) fits(c lab.Call) bool { return x.op.fits(c) && bytes.Contains(c.Body, x.only) }
