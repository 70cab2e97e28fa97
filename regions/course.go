package regions

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
)

const (
	silence      = time.Second            // how long a Region that was quick before may take to answer before it counts as silent
	shortestWait = 250 * time.Millisecond // a request that waited in vain for less time than this proves nothing about the Region
	noticedLate  = 200 * time.Millisecond // if silence is noticed this long after the limit, this process was paused

	probeEvery  = 5 * time.Second
	homeAfter   = 30 * time.Second // how long home must answer all probes before requests return
	relapse     = 2 * time.Minute  // if home fails within this time after a return, the next return takes longer
	longestHome = 8 * time.Minute
)

// exchange is a request that has ended. Its times count from the creation of the DB.
type exchange struct {
	region, moves int // Region that the request went to, and number of moves before it was sent
	sent, ended   time.Duration
	limit         time.Duration // time when the request's context ended, or would have ended; zero if the context had no deadline
	err           error
	brief         bool // the request is a write, or a strongly consistent read of one item
}

// outcome is the state of a Region according to one exchange.
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

// course decides which Region requests go to. It has no clock and sends nothing.
type course struct {
	regions int           // number of Regions; home is the first
	at      int           // the Region that requests go to
	moves   int           // number of moves so far
	left    error         // why the previous Region was left; nil at home
	quick   bool          // the Region has answered a request since the last move, or the probes before the move, within the time silence
	back    time.Duration // when probes last brought requests home; zero if never

	wait   time.Duration // how long home must answer probes before requests return
	probed time.Duration // when the last probe was sent
	since  time.Duration // when the first probe of the current series of answered probes was sent; zero if the last probe was not answered
}

// note records an exchange with the current Region. It ignores exchanges that were in flight
// during a move.
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

// leave sends requests to the next Region.
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

// probes reports whether a request that is sent now also sends a probe of home.
func (c *course) probes(now time.Duration) bool {
	if c.at == 0 || durations.Less(now, c.probed) < probeEvery {
		return false
	}
	c.probed = now
	return true
}

// noteProbe records the answer to a probe of home. After enough such answers, requests
// return home.
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
		c.quick = true // home has answered all probes within the time silence
	}
}
