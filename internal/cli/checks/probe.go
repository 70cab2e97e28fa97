package checks

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// These limit the timed requests.
const (
	measureTime  = 5 * time.Second
	measureCount = 100
)

// probe observes the server's clock and the time of each request. It is safe for concurrent
// use.
type probe struct {
	mu  sync.Mutex
	saw sightings
}

// sightings are the measurements of a probe.
type sightings struct {
	clock clockRange
	took  []time.Duration // times of answered requests
}

// watch returns a client whose requests p observes. The client does not retry, so that each
// request is timed alone.
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
		p.saw.clock.add(r.Date, r.Began, r.Began.Add(r.Took))
	}
	if !r.Throttled() {
		p.saw.took = append(p.saw.took, r.Took)
	}
}

// timed sends requests one after another, for some seconds at most. It returns the sorted
// times of the answered requests, and the error that ended it early.
func (p *probe) timed(send func() error) ([]time.Duration, error) {
	var err error
	before := len(p.seen().took)
	for n, began := 0, time.Now(); err == nil && n < measureCount && time.Since(began) < measureTime; n++ {
		err = send()
	}
	took := p.seen().took[before:]
	slices.Sort(took)
	return took, err
}

func (p *probe) seen() sightings {
	p.mu.Lock()
	defer p.mu.Unlock()
	saw := p.saw
	saw.took = slices.Clone(saw.took)
	return saw
}

// leastTries is the number of renewal attempts that a lease should leave time for. The
// default lease leaves time for four after the first.
const leastTries = 4

// roundTrip compares the round trip with the lease: how many renewal attempts fit between
// the time that a renewal is due and the end of trust. took is sorted.
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

// triesIn returns how many consecutive requests of that time fit between the time that a
// renewal is due and the end of trust.
func triesIn(t lease.Timing, took time.Duration) int {
	return int(min(durations.Less(t.Trust(), t.Every)/max(took, time.Microsecond), math.MaxInt32))
}

// isSlow reports whether requests of that time leave too few attempts, or take a large part
// of the time between two renewals. In the second case each wait for a grant is long as
// well, and a slightly slower reply comes too late.
func isSlow(t lease.Timing, took time.Duration) bool {
	return triesIn(t, took) < leastTries || took > t.Every/4
}

// leaseFor returns the shortest lease, in whole seconds, that is long enough for requests of that time.
func leaseFor(took, skew time.Duration) time.Duration {
	length := max(time.Second, durations.Sum(skew, time.Second))
	for isSlow(lease.Usual(length, skew), took) {
		length = durations.Sum(length, time.Second)
	}
	return length
}

// roundTripText formats a round trip: 0.41ms, 3.2ms, 152ms.
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

// percentile returns the value that a share p of values, in (0, 1], does not exceed
// (nearest rank). values must be sorted. It returns 0 if there are no values.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
}
