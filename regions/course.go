package regions

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

const (
	silence      = time.Second            // how long a Region that has answered quickly may take to answer before it counts as silent
	shortestWait = 250 * time.Millisecond // a request that got no answer for less time than this says nothing about its Region
	noticedLate  = 200 * time.Millisecond // a timeout that is noticed later than this means that this process was paused

	probeEvery  = 5 * time.Second
	homeAfter   = 30 * time.Second // how long home must answer every probe before requests return to it
	relapse     = 2 * time.Minute  // if home fails this soon after a return, the next return takes twice as long
	longestHome = 8 * time.Minute
)

// exchange is a request that has ended. Its times count from the creation of the DB.
type exchange struct {
	region, moves int // index of the Region that the request went to, and number of moves before the request
	sent, ended   time.Duration
	limit         time.Duration // deadline of the request's context; zero if none
	err           error
	brief         bool // the request is a write, or a strongly consistent read of one item
}

// outcome is the state of a Region as shown by one exchange.
type outcome int

const (
	saysNothing outcome = iota
	serves
	failed
)

// outcome classifies what an exchange shows about its Region.
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

// course decides which Region requests go to. It is pure logic: it has no clock and sends
// nothing.
type course struct {
	regions int           // number of Regions; home is the first
	at      int           // index of the Region that requests go to
	moves   int           // number of moves so far
	left    error         // error that made requests leave the previous Region; nil at home
	quick   bool          // the Region has answered within the time silence: a request since the last move, or the probes before it
	back    time.Duration // when probes last brought requests home; zero if never

	wait   time.Duration // how long home must answer every probe before requests return to it
	probed time.Duration // when the last probe was sent
	since  time.Duration // when the first of the current series of answered probes was sent; zero if the last probe was not answered
}

// note records an exchange, and leaves the current Region if the exchange failed and
// mayLeave is true. It ignores requests that were sent before the last move.
func (c *course) note(e exchange, mayLeave bool) {
	if e.region != c.at || e.moves != c.moves {
		return
	}
	switch e.outcome() {
	case serves:
		c.quick = c.quick || e.brief && durations.Less(e.ended, e.sent) <= silence
	case failed:
		if mayLeave {
			c.leave(e.ended, e.err)
		}
	}
}

// leave moves to the next Region.
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
	c.at, c.moves, c.left, c.quick = to, c.moves+1, why, false
}

// probes reports whether to send a probe of home now, beside a request to another Region.
func (c *course) probes(now time.Duration) bool {
	if c.at == 0 || durations.Less(now, c.probed) < probeEvery {
		return false
	}
	c.probed = now
	return true
}

// noteProbe records the result of a probe of home. Requests return home once home has
// answered every probe for the time c.wait.
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
		c.quick = true // home has just answered probes, each within the time silence
	}
}
