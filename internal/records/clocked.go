package records

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// defaultSkew is the most by which the clocks of a fleet are taken to differ,
// in layouts whose records say when they expire. It is above zero because a
// clock that is a second fast would end everybody's locks a second early.
const defaultSkew = 2 * time.Second

// clocked is what the layouts share whose records carry the time of their
// expiry, by the clock of whoever wrote them. A holder is dead once that time,
// the skew and one step have passed.
type clocked struct {
	schema
	expires string        // attribute
	step    time.Duration // its unit
	skew    time.Duration
}

// newClocked checks the skew.
func newClocked(layout string, key schema, expires string, step, skew time.Duration) (clocked, error) {
	if skew < 0 {
		return clocked{}, fmt.Errorf("layout: %s: MaxSkew is %v: negative", layout, skew)
	}
	return clocked{schema: key, expires: expires, step: step, skew: cmp.Or(skew, defaultSkew)}, nil
}

func (p clocked) Schema() protocol.Schema { return p.schema.Schema }

func (p clocked) Skew() time.Duration { return p.skew }

// setExpires moves the expiry to the end of a lease that begins now.
func (p clocked) setExpires(w *protocol.Write, now time.Time, lease time.Duration) {
	w.Set(p.expires, number(endOf(now, lease, p.step)))
}

// isExpired is the condition that a record has expired by every clock of the
// fleet.
func (p clocked) isExpired(w *protocol.Write, now time.Time) string {
	last := now.Add(-p.skew).UnixMilli()/p.step.Milliseconds() - 1
	return w.Name(p.expires) + " <= " + w.Value(number(last))
}

// decodeExpires reads the expiry, which a lock cannot be without. A peer writes
// what its duration makes of the time, and compares the number: one before 1970
// has passed, one after 9999 is for ever, and a fraction may be part of it.
func (p clocked) decodeExpires(d *decoder) time.Time {
	d.required(p.expires)
	return time.UnixMilli(d.clamped(p.expires, lastSecond*1000/p.step.Milliseconds()) * p.step.Milliseconds())
}

// lastSecond is the last of the year 9999, which RFC 3339 still has.
const lastSecond = 253402300799
