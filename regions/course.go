package regions

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

const (
	// Time limit for the reply to a brief request (see kind). The limit applies to a Region's reads, or
	// writes, as soon as the Region has replied to one of them within this time. A probe is a read.
	silence = time.Second
	// A timeout counts as a failure of the Region only if the request has waited at least this long
	// for a reply. A timeout after a shorter wait shows nothing about the Region.
	shortestWait = 250 * time.Millisecond
	// A process that runs without a pause notices a timeout at most this long after the deadline. A
	// process that notices it later was paused, and the timeout shows nothing about the Region.
	noticedLate = 200 * time.Millisecond

	probeEvery = 5 * time.Second
	// Requests return to the home Region once it has replied to every probe for this long.
	homeAfter = 30 * time.Second
	// The home Region must reply to probes for some time before requests return to it: at first for
	// homeAfter. If it fails within "relapse" after a return, the required time doubles, up to
	// longestHome.
	relapse     = 2 * time.Minute
	longestHome = 8 * time.Minute
)

// exchange is a request that has ended. Its times are durations since the creation of the DB.
type exchange struct {
	// Index of the Region to which the request was sent, and the value of course.moves at that
	// time.
	region, moves int
	sent, ended   time.Duration
	limit         time.Duration // deadline of the request's context; zero if the context has none
	err           error
	kind          kind
}

// kind is a kind of request. Brief requests are writes, and strongly consistent reads of one item.
type kind int

const (
	notBrief kind = iota
	read
	write
)

// outcome is what one exchange shows about its Region: that the Region serves requests, that the
// Region has failed, or nothing.
type outcome int

const (
	saysNothing outcome = iota
	serves
	failed
)

// outcome returns what the exchange shows about its Region.
func (e exchange) outcome() outcome {
	reply := decide.Classify(e.err)
	silent := errors.Is(e.err, context.DeadlineExceeded)
	switch {
	case reply.Cause == decide.None, reply.Cause == decide.ConditionFailed, reply.Cause == decide.Busy:
		return serves
	case reply.Cause != decide.Unreachable, reply.Effect != decide.Unknown, errors.Is(e.err, context.Canceled):
		return saysNothing
	case silent && (durations.Less(e.ended, e.limit) > noticedLate || durations.Less(e.ended, e.sent) < shortestWait):
		return saysNothing
	}
	return failed
}

// course decides to which Region requests are sent. It reads no clock and sends no requests.
type course struct {
	regions int // number of Regions; the first is the home Region
	at      int // index of the Region to which requests are sent now
	moves   int // how often requests have moved to another Region, or "left" has become nil, so far
	// Error that made requests leave the previous Region; nil while the home Region serves. If all
	// other Regions have failed, it is set in the home Region until that Region replies.
	left error
	// For each kind of brief request, whether the current Region has replied to one within one second
	// (silence) since requests moved to it. For reads, it is also true after requests have returned to
	// the home Region, because that Region has replied to each probe within one second.
	quick [write + 1]bool
	// Time when requests last returned to the home Region; zero if they never returned.
	back time.Duration

	// Requests return to the home Region once it has replied to every probe for this duration.
	wait   time.Duration
	probed time.Duration // time when the last probe was sent
	// Time when the first probe of the current series was sent. A series consists of successive
	// probes that the home Region has answered. "since" is zero if it did not answer the last
	// probe.
	since time.Duration
}

// note records an exchange. If mayLeave is true and the exchange shows that the current Region
// has failed, note makes later requests leave that Region. It ignores an exchange whose request
// was sent before the last move.
func (c *course) note(e exchange, mayLeave bool) {
	if e.region != c.at || e.moves != c.moves {
		return
	}
	switch e.outcome() {
	case serves:
		if c.at == 0 && c.left != nil { // home serves, although requests have come back without probes
			c.moves, c.left = c.moves+1, nil
		}
		c.quick[e.kind] = c.quick[e.kind] || e.kind != notBrief && durations.Less(e.ended, e.sent) <= silence
	case failed:
		if mayLeave {
			c.leave(e.ended, e.err)
		}
	}
}

// leave makes later requests go to the next Region.
func (c *course) leave(now time.Duration, why error) {
	if c.at == 0 {
		c.probed, c.since = now, 0
		c.wait = min(durations.Times(c.wait, 2), longestHome)
		if c.back == 0 || durations.Less(now, c.back) > relapse {
			c.wait = homeAfter
		}
	}
	c.move((c.at+1)%c.regions, why)
}

func (c *course) move(to int, why error) {
	c.at, c.moves, c.left, c.quick = to, c.moves+1, why, [write + 1]bool{}
}

// probes reports whether the DB must send a probe to the home Region now, in addition to a
// request to another Region. If so, it records the time of the probe.
func (c *course) probes(now time.Duration) bool {
	if c.at == 0 || durations.Less(now, c.probed) < probeEvery {
		return false
	}
	c.probed = now
	return true
}

// noteProbe records the result of a probe of the home Region. Once that Region has replied to every
// probe for as long as c.wait, requests return to it.
func (c *course) noteProbe(e exchange) {
	if c.at == 0 {
		return
	}
	switch {
	case e.outcome() != serves:
		c.since = 0
	case c.since == 0:
		c.since = e.sent
	case durations.Less(e.ended, c.since) >= c.wait:
		c.back = e.ended
		c.move(0, nil)
		// The home Region has replied to every probe of the current series within one second
		// (silence).
		c.quick[read] = true
	}
}
