package checks

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/layout"
)

// A measurement of round-trip times (probe.timed) ends after measureTime or measureCount
// requests, whichever comes first.
const (
	measureTime  = 5 * time.Second
	measureCount = 100
)

// probe records two things about the requests of a client: the difference between the
// server's clock and this machine's, and the round-trip times. It is safe for concurrent
// use.
type probe struct {
	mu    sync.Mutex
	clock clockRange
	took  []time.Duration // round-trip times of the requests that were answered and not throttled
}

// watch returns a copy of the client db, and records all requests of the copy in p. The
// copy does not retry, so that each round-trip time measures one request.
func (p *probe) watch(db *dynamodb.Client) *dynamodb.Client {
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	return dynamodb.New(db.Options(), once, requests.Watch{Each: p.see}.Client)
}

func (p *probe) see(r requests.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Code == 0 {
		return
	}
	if !r.Date.IsZero() {
		p.clock.add(r.Date, r.Began, r.Began.Add(r.Took))
	}
	if !r.Throttled() {
		p.took = append(p.took, r.Took)
	}
}

// timed calls send until measureTime has passed or measureCount calls were made. It returns the
// sorted round-trip times of the requests that were answered and not throttled. If send fails,
// timed stops and returns the error and the times so far.
func (p *probe) timed(send func() error) ([]time.Duration, error) {
	var err error
	_, before := p.seen()
	for n, began := 0, time.Now(); err == nil && n < measureCount && time.Since(began) < measureTime; n++ {
		err = send()
	}
	_, all := p.seen()
	took := all[len(before):]
	slices.Sort(took)
	return took, err
}

// seen returns the clock difference and the round-trip times recorded so far.
func (p *probe) seen() (clockRange, []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock, slices.Clone(p.took)
}

// leastTries is how many renewal attempts should fit, one after another, before the holder stops
// trusting its lock. The first attempt begins when the renewal is due.
const leastTries = 4

// roundTrip returns a finding that says whether the round-trip times suit a lease of the given
// length. The parameter skew is the allowed clock error. The times must be sorted.
func roundTrip(length, skew time.Duration, took []time.Duration) []Finding {
	if len(took) == 0 {
		return nil
	}
	timing := lease.Usual(length, skew)
	p50, p99 := percentile(took, 0.5), percentile(took, 0.99)
	n := triesIn(timing, p99)
	f := Finding{
		Check: "round trip", State: OK,
		What: fmt.Sprintf("p50 %s, p99 %s of %s; a lease of %s is renewed every %s and trusted for %s: time for %s",
			roundTripText(p50), roundTripText(p99), wording.Count(len(took), "renewal", "renewals"), wording.Duration(timing.Lease), wording.Duration(timing.Every), wording.Duration(timing.Trust()), wording.Count(n, "try", "tries")),
		Values: map[string]any{
			"p50Ms": float64(p50.Microseconds()) / 1000, "p99Ms": float64(p99.Microseconds()) / 1000, "requests": len(took),
			"leaseMs": timing.Lease.Milliseconds(), "renewEveryMs": timing.Every.Milliseconds(), "trustMs": timing.Trust().Milliseconds(), "tries": n,
		},
	}
	if isSlow(timing, p99) {
		f.State = Warning
		if n < 2 {
			f.State = Fatal
		}
		f.Do = fmt.Sprintf("use a lease of at least %s (-l, or Config.Lease), or a table that is nearer", wording.Duration(leaseFor(p99, timing.Skew)))
	}
	return []Finding{f}
}

// triesIn returns how many renewal attempts fit, one after another, before the holder stops
// trusting its lock. The first attempt begins when the renewal is due. Each attempt takes the
// duration "took".
func triesIn(t lease.Timing, took time.Duration) int {
	return int(min(durations.Less(t.Trust(), t.Every)/max(took, time.Microsecond), math.MaxInt32))
}

// isSlow reports whether requests that take the duration "took" are too slow for the lease: fewer
// than leastTries renewal attempts fit, or one takes more than t.Every/4. In the second case, a
// slightly slower renewal exceeds its time limit (see decide.RenewalDeadline).
func isSlow(t lease.Timing, took time.Duration) bool {
	return triesIn(t, took) < leastTries || took > t.Every/4
}

// leaseFor returns the shortest lease, in whole seconds, that is long enough for requests that take
// the duration "took" (see isSlow).
func leaseFor(took, skew time.Duration) time.Duration {
	length := max(time.Second, durations.Sum(skew, time.Second))
	for isSlow(lease.Usual(length, skew), took) {
		length = durations.Sum(length, time.Second)
	}
	return length
}

// roundTripText formats a round-trip time with two or three digits, such as 0.41ms, 3.2ms
// or 152ms.
func roundTripText(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.2fms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1fms", ms)
	}
	return fmt.Sprintf("%.0fms", ms)
}

// percentile returns the p-quantile of values by the nearest-rank method, for p greater than 0
// and at most 1. The values must be sorted, and not be empty.
func percentile(values []time.Duration, p float64) time.Duration {
	return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
}

// clockTolerance is the largest acceptable difference between this machine's clock and the server's
// clock. It applies if the safety of the locks does not depend on clocks: a wrong clock then mostly
// affects the times that leasehold displays.
const clockTolerance = 30 * time.Second

// narrow improves the measurement of the server's clock. The server's replies contain only whole
// seconds, so narrow sends a read when the server's clock probably begins a new second. The reply
// shows whether that second has begun, which halves the uncertainty.
func (t *Subject) narrow(ctx context.Context) {
	const reads, enough = 4, 200 * time.Millisecond
	for range reads {
		clock, _ := t.probe.seen()
		if !clock.known || durations.Less(clock.to, clock.from) <= enough || !attempts.Wait(ctx, clock.untilSecond(time.Now())) {
			return
		}
		_ = t.get(t.Requests())(ctx) // the error does not matter, because a reply that reports an error also has a Date header
	}
}

// clock returns the finding about the difference between this machine's clock and the
// server's.
func (t *Subject) clock(ctx context.Context) []Finding {
	t.narrow(ctx)
	clock, _ := t.probe.seen()
	if !clock.known {
		return []Finding{{Check: "clock", State: Unknown, What: "the server's replies contain no time"}}
	}
	honest := honestSkew(clock)
	f := Finding{
		Check: "clock", State: OK, What: clockText(clock),
		Values: map[string]any{
			"serverAheadMinMs": clock.from.Milliseconds(), "serverAheadMaxMs": clock.to.Milliseconds(), "honestMaxSkewMs": honest.Milliseconds(),
		},
	}
	if honest <= clockTolerance {
		f.What += fmt.Sprintf("; a LEASEHOLD_MAX_SKEW of %s is safe here while the clock stays synchronised", wording.Duration(honest))
	}
	const set = "synchronise this machine's clock (chrony, or the time service of its cloud)"
	switch skew := t.Proto.Skew(); {
	case t.Layout.Capabilities().Expiry == layout.WallClock && clock.least() > skew/2:
		f.State, f.Do = Warning, set
		if clock.least() > skew {
			f.State = Fatal
		}
		f.What += fmt.Sprintf("; layout %s compares times, and is safe only while no two clocks differ by more than %s", t.Layout.Name(), wording.Duration(skew))
	case t.MaxSkew > 0 && clock.least() > t.MaxSkew:
		f.State, f.Do = Fatal, set+", or use a larger LEASEHOLD_MAX_SKEW: with this one two clients can hold one lock"
	case t.MaxSkew > 0 && honest > t.MaxSkew:
		f.State, f.Do = Warning, fmt.Sprintf("give a LEASEHOLD_MAX_SKEW of %s, or leave it out", wording.Duration(honest))
	case clock.least() > clockTolerance:
		f.State, f.Do = Warning, set
		f.What += "; ages and times are wrong, tokens may fall once a record was deleted, and AWS refuses requests from five minutes on"
	}
	return []Finding{f}
}

// honestSkew returns a value for MaxSkew that is safe with the measured clock difference. It is
// twice the largest possible difference, rounded up to a multiple of half a second. The factor two
// allows for drift.
func honestSkew(c clockRange) time.Duration {
	const step = 500 * time.Millisecond
	return max(durations.Sum(durations.Times(c.most(), 2), step-1).Truncate(step), step)
}

func clockText(c clockRange) string {
	rounded := func(d time.Duration) string { return wording.Duration(d.Round(time.Millisecond)) }
	if c.least() == 0 {
		return "within " + rounded(c.most()) + " of the server's"
	}
	off, side := c.middle(), "behind"
	if off < 0 {
		off, side = -off, "ahead of"
	}
	return fmt.Sprintf("%s %s the server's (give or take %s)", rounded(off), side, rounded(durations.Less(c.to, c.from)/2))
}

// clockRange is the range of possible differences between the server's clock and this machine's,
// positive if the server is ahead. A reply's Date header states whole seconds. One reply gives a
// range of one second plus the request's duration; later replies may narrow it.
type clockRange struct {
	known    bool
	from, to time.Duration
}

// add narrows the range by one reply. The parameter "date" is the time in the reply's Date header,
// in whole seconds. So the server's clock was less than one second past "date" when the server
// wrote the reply. This machine's clock was then between "sent" and "received".
func (c *clockRange) add(date, sent, received time.Time) {
	from, to := date.Sub(received), date.Add(time.Second).Sub(sent)
	if c.known {
		from, to = max(from, c.from), min(to, c.to)
		if from > to { // the two ranges do not overlap: different servers replied, or a clock was set between the replies
			from, to = to, from
		}
	}
	c.known, c.from, c.to = true, from, to
}

// untilSecond returns how long it takes from now until the server's clock begins a new
// second. It assumes that the true difference between the clocks is in the middle of the
// range.
func (c clockRange) untilSecond(now time.Time) time.Duration {
	there := now.Add(c.middle())
	return there.Truncate(time.Second).Add(time.Second).Sub(there)
}

// The methods least and most return the smallest and the largest absolute clock difference in the
// range.
func (c clockRange) least() time.Duration { return max(c.from, -c.to, 0) }

func (c clockRange) most() time.Duration { return max(c.to, -c.from) }

// middle returns the middle of the range, with its sign.
func (c clockRange) middle() time.Duration { return durations.Sum(c.from, c.to) / 2 }
