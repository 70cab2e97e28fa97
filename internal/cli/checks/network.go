package checks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/layout"
)

// clockTolerance is how much the clocks may differ where only times that people
// read depend on it.
const clockTolerance = 30 * time.Second

// network says what was seen of connections, clocks and throttling.
func (t *Target) network(ctx context.Context) []Finding {
	t.narrow(ctx)
	saw := t.probe.seen()
	return []Finding{throttling(saw), t.connections(saw), t.clock(saw.clock)}
}

// narrow reads when the server's clock may go on to its next second, by what is known of
// it: such a reply halves what is not. A table nearby has answered everything within one
// second.
func (t *Target) narrow(ctx context.Context) {
	const reads, enough = 4, 200 * time.Millisecond
	for range reads {
		clock := t.probe.seen().clock
		if !clock.known || clock.to-clock.from <= enough || !attempts.Wait(ctx, clock.untilSecond(time.Now())) {
			return
		}
		_ = t.get(ctx) // a refusal has a Date too
	}
}

func throttling(saw sightings) Finding {
	f := Finding{
		Check: "throttling", State: OK, What: fmt.Sprintf("none in %s", wording.Count(saw.answered, "request", "requests")),
		Values: map[string]any{"throttled": saw.throttled, "requests": saw.answered},
	}
	if saw.throttled > 0 {
		f.State, f.What = Warning, fmt.Sprintf("%d of %s throttled", saw.throttled, wording.Count(saw.answered, "request was", "requests were"))
		f.Do = "raise the table's capacity, or make it pay per request"
	}
	return f
}

func (t *Target) connections(saw sightings) Finding {
	f := Finding{
		Check: "connections", State: OK,
		What:   fmt.Sprintf("%d new, %d reused, to %s, %s", saw.opened, saw.reused, saw.server, tlsName(saw.tls)),
		Values: map[string]any{"new": saw.opened, "reused": saw.reused, "server": saw.server, "tls": tlsName(saw.tls)},
	}
	var do []string
	if saw.opened > saw.reused {
		do = append(do, "something closes connections after use, and each renewal pays for a new one: look for a proxy that does not keep them alive")
	}
	if endpoint := aws.ToString(t.DB.Options().BaseEndpoint); saw.tls == 0 && strings.HasPrefix(endpoint, "http://") && !t.onThisMachine() {
		do = append(do, "others on the network can read and change requests: use an https:// endpoint")
	}
	if len(do) > 0 {
		f.State, f.Do = Warning, strings.Join(do, "; ")
	}
	return f
}

func (t *Target) clock(clock clockRange) Finding {
	if !clock.known {
		return Finding{Check: "clock", State: Unknown, What: "the server does not say its time"}
	}
	honest := honestSkew(clock)
	f := Finding{
		Check: "clock", State: OK, What: clockText(clock),
		Values: map[string]any{
			"serverAheadMinMs": clock.from.Milliseconds(), "serverAheadMaxMs": clock.to.Milliseconds(), "honestMaxSkewMs": honest.Milliseconds(),
		},
	}
	if honest <= clockTolerance {
		f.What += fmt.Sprintf("; a --max-skew of %s is honest here, if something keeps the clock so", wording.Duration(honest))
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
		f.State, f.Do = Fatal, set+", or give a --max-skew that is true: with this one two clients can hold one lock"
	case t.MaxSkew > 0 && honest > t.MaxSkew:
		f.State, f.Do = Warning, fmt.Sprintf("give a --max-skew of %s, or leave it out", wording.Duration(honest))
	case clock.least() > clockTolerance:
		f.State, f.Do = Warning, set
		f.What += "; ages and times are wrong, tokens may fall once a record was deleted, and AWS refuses requests from five minutes on"
	}
	return f
}

// honestSkew is what may be said of the clock by what was measured: twice the most that it
// may be wrong by now, for what it may be wrong by later, in half seconds.
func honestSkew(c clockRange) time.Duration {
	const step = 500 * time.Millisecond
	return max((2*c.most() + step - 1).Truncate(step), step)
}

func clockText(c clockRange) string {
	middle, off := (c.from+c.to)/2, (c.to-c.from)/2
	switch {
	case c.least() == 0:
		return "within " + wording.Duration(c.most().Round(time.Millisecond)) + " of the server's"
	case middle > 0:
		return fmt.Sprintf("%s behind the server's (give or take %s)", wording.Duration(middle.Round(time.Millisecond)), wording.Duration(off.Round(time.Millisecond)))
	}
	return fmt.Sprintf("%s ahead of the server's (give or take %s)", wording.Duration((-middle).Round(time.Millisecond)), wording.Duration(off.Round(time.Millisecond)))
}
