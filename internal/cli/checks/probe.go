package checks

import (
	"cmp"
	"crypto/tls"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/cli/requests"
)

// Bounds of the requests that are timed.
const (
	measureTime  = 5 * time.Second
	measureCount = 100
)

// probe watches the connections, the server's clock, the throttling and the time of
// each request. It is safe for concurrent use.
type probe struct {
	mu  sync.Mutex
	saw sightings
}

// sightings are what a probe has seen.
type sightings struct {
	answered       int
	throttled      int
	opened, reused int    // connections
	server         string // address of the other end
	tls            uint16 // version; 0: none
	clock          clockRange
	took           []time.Duration // of answered requests
}

// watch returns a client whose requests p watches. It does not retry by itself, so
// that each throttled request is seen.
func (p *probe) watch(db *dynamodb.Client) *dynamodb.Client {
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	return dynamodb.New(db.Options(), once, requests.Watch{Each: p.see}.Client)
}

func (p *probe) see(r requests.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Server == "":
	case r.Reused:
		p.saw.reused++
	default:
		p.saw.opened++
	}
	p.saw.server = cmp.Or(r.Server, p.saw.server)
	if r.Code == 0 {
		return
	}
	p.saw.answered++
	p.saw.tls = cmp.Or(r.TLS, p.saw.tls)
	if !r.Date.IsZero() {
		p.saw.clock.add(r.Date, r.Began, r.Began.Add(r.Took))
	}
	if r.Throttled() {
		p.saw.throttled++
	} else {
		p.saw.took = append(p.saw.took, r.Took)
	}
}

// timed sends requests one after another, for some seconds at most, and returns the time
// of each that was answered, sorted, and the error that ended it early.
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

// tlsName is the name of a TLS version.
func tlsName(version uint16) string {
	if version == 0 {
		return "without TLS"
	}
	return tls.VersionName(version)
}

// clockRange bounds how far a server's clock is ahead of this machine's. The header
// Date has whole seconds, so that one reply bounds it to a second and the time of
// the request; each further reply may narrow it.
type clockRange struct {
	known    bool
	from, to time.Duration
}

// add narrows the range by a reply with that Date. At some time between sent and
// received, the server's clock showed date, or less than a second more.
func (c *clockRange) add(date, sent, received time.Time) {
	from, to := date.Sub(received), date.Add(time.Second).Sub(sent)
	if c.known {
		from, to = max(from, c.from), min(to, c.to)
		if from > to { // several servers, or a clock that was set meanwhile
			from, to = to, from
		}
	}
	c.known, c.from, c.to = true, from, to
}

// untilSecond is how long after now the server's clock begins a second, if it is ahead by the
// middle of what it may be.
func (c clockRange) untilSecond(now time.Time) time.Duration {
	there := now.Add((c.from + c.to) / 2)
	return there.Truncate(time.Second).Add(time.Second).Sub(there)
}

// least is the least by which the clocks differ, and most the most.
func (c clockRange) least() time.Duration {
	switch {
	case c.from > 0:
		return c.from
	case c.to < 0:
		return -c.to
	}
	return 0
}

func (c clockRange) most() time.Duration { return max(c.to, -c.from) }
