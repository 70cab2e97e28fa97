package checks

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/layout"
)

// clockTolerance is how much the clocks may differ if only displayed times depend on it.
const clockTolerance = 30 * time.Second

// narrow reads at the times when the server's clock is expected to begin a second: each such
// reply halves the uncertainty. A nearby table answers all of these within one second.
func (t *Target) narrow(ctx context.Context) {
	const reads, enough = 4, 200 * time.Millisecond
	for range reads {
		clock := t.probe.seen().clock
		if !clock.known || durations.Less(clock.to, clock.from) <= enough || !attempts.Wait(ctx, clock.untilSecond(time.Now())) {
			return
		}
		_ = t.get(ctx) // even a refusal has a Date
	}
}

// clock compares this machine's clock with the server's.
func (t *Target) clock(ctx context.Context) []Finding {
	t.narrow(ctx)
	clock := t.probe.seen().clock
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
		f.What += fmt.Sprintf("; a --max-skew of %s is safe here while the clock stays synchronised", wording.Duration(honest))
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
		f.State, f.Do = Fatal, set+", or use a larger --max-skew: with this one two clients can hold one lock"
	case t.MaxSkew > 0 && honest > t.MaxSkew:
		f.State, f.Do = Warning, fmt.Sprintf("give a --max-skew of %s, or leave it out", wording.Duration(honest))
	case clock.least() > clockTolerance:
		f.State, f.Do = Warning, set
		f.What += "; ages and times are wrong, tokens may fall once a record was deleted, and AWS refuses requests from five minutes on"
	}
	return []Finding{f}
}

// honestSkew returns a safe MaxSkew for the measured difference: twice the largest error that
// the clock may have now, to allow for later errors, in half seconds.
func honestSkew(c clockRange) time.Duration {
	const step = 500 * time.Millisecond
	return max(durations.Sum(durations.Times(c.most(), 2), step-1).Truncate(step), step)
}

func clockText(c clockRange) string {
	middle, off := c.middle(), durations.Less(c.to, c.from)/2
	switch {
	case c.least() == 0:
		return "within " + wording.Duration(c.most().Round(time.Millisecond)) + " of the server's"
	case middle > 0:
		return fmt.Sprintf("%s behind the server's (give or take %s)", wording.Duration(middle.Round(time.Millisecond)), wording.Duration(off.Round(time.Millisecond)))
	}
	return fmt.Sprintf("%s ahead of the server's (give or take %s)", wording.Duration((-middle).Round(time.Millisecond)), wording.Duration(off.Round(time.Millisecond)))
}

// clockRange limits how far a server's clock is ahead of this machine's. The header Date has
// whole seconds, so one reply limits the difference to a second plus the time of the request.
// Each further reply may narrow it.
type clockRange struct {
	known    bool
	from, to time.Duration
}

// add narrows the range by a reply with the given Date. At some time between sent and
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

// untilSecond returns how long after now the server's clock begins a second, if the
// difference is at the middle of the range.
func (c clockRange) untilSecond(now time.Time) time.Duration {
	there := now.Add(c.middle())
	return there.Truncate(time.Second).Add(time.Second).Sub(there)
}

// least returns the least by which the clocks differ, and most the most.
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

// middle returns the middle of the range.
func (c clockRange) middle() time.Duration { return durations.Sum(c.from, c.to) / 2 }
