package seek

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// ReportEvery is the time between two reports of the same trouble.
const ReportEvery = time.Minute

// Trouble decides when failed requests of a wait are reported: the first one, and
// then one each minute while requests go on failing. It is for one goroutine.
type Trouble struct {
	since        decide.Instant // when they began to fail
	failing      bool
	reported     decide.Instant
	everReported bool
}

// Passed ends the trouble: a request has been answered.
func (t *Trouble) Passed() { t.failing = false }

// due reports whether it is time for a report. Throttling has an event of its own
// for each request. It is reported once requests have failed for ReportEvery.
func (t *Trouble) due(now decide.Instant, throttled bool) bool {
	if !t.failing {
		t.failing, t.since = true, now
	}
	if throttled && now.Mono-t.since.Mono < ReportEvery || t.everReported && now.Mono-t.reported.Mono < ReportEvery {
		return false
	}
	t.everReported, t.reported = true, now
	return true
}

// Report reports, if it is due, that a request for key has failed and is repeated.
func (t *Trouble) Report(ctx context.Context, c *Client, key protocol.Key, f *attempts.Failure) {
	switch {
	case f.Cause == decide.Refused, f.Cause == decide.ConditionFailed: // an answer
	case ctx.Err() != nil, !t.due(c.Now(), f.Cause == decide.Busy || f.Cause == decide.Conflict):
	default:
		c.Listener.Report(ctx, core.Event{Kind: core.WaitError, Key: key, Err: f.Err})
	}
}
