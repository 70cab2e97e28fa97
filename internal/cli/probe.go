package cli

import (
	"crypto/tls"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// probe is an HTTP client that watches the connections, the server's clock, the
// throttling and the time of each request. It is safe for concurrent use.
type probe struct {
	next aws.HTTPClient

	mu     sync.Mutex
	saw    sightings
	timing bool // requests are timed
}

// sightings are what a probe has seen.
type sightings struct {
	answered       int
	throttled      int
	opened, reused int    // connections
	server         string // address of the other end
	tls            uint16 // version; 0: none
	clock          clockRange
	took           []time.Duration // of answered requests, while they are timed
}

// watch returns a client whose requests p watches. It does not retry by itself, so
// that each throttled request is seen.
func (p *probe) watch(db *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		p.next, o.HTTPClient = o.HTTPClient, p
		o.Retryer = aws.NopRetryer{}
	})
}

// Do sends the request.
func (p *probe) Do(r *http.Request) (*http.Response, error) {
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: p.connected}))
	sent := time.Now()
	response, err := p.next.Do(r)
	received := time.Now()
	if err != nil {
		return response, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saw.answered++
	if response.TLS != nil {
		p.saw.tls = response.TLS.Version
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		p.saw.clock.add(date, sent, received)
	}
	if response.StatusCode == http.StatusBadRequest && isThrottling(errorCode(response)) {
		p.saw.throttled++
	} else if p.timing {
		p.saw.took = append(p.saw.took, received.Sub(sent))
	}
	return response, nil
}

func (p *probe) connected(c httptrace.GotConnInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Reused {
		p.saw.reused++
	} else {
		p.saw.opened++
	}
	p.saw.server = c.Conn.RemoteAddr().String()
}

// time starts or stops the timing of requests.
func (p *probe) time(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timing = on
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

// percentile returns the value that a share p of values, in (0, 1], does not exceed
// (nearest rank). values must be sorted. 0: there are none.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
}
