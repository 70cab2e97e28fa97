package records

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// defaultSkew is the default of MaxSkew. Zero would be unsafe: a client whose clock is one
// second fast would take over every lock one second early.
const defaultSkew = 2 * time.Second

// clocked is shared by the layouts whose records have an expiry time. The client that wrote
// the record set that time by its own clock. A holder is dead at expiry + skew + one step.
type clocked struct {
	schema
	expires string        // attribute with the expiry time
	step    time.Duration // unit of the expiry time
	skew    time.Duration
}

// newClocked checks the skew and fills in its default.
func newClocked(layout string, key schema, expires string, step, skew time.Duration) (clocked, error) {
	if skew < 0 {
		return clocked{}, fmt.Errorf("layout: %s: MaxSkew is %v: it must not be negative", layout, skew)
	}
	return clocked{schema: key, expires: expires, step: step, skew: cmp.Or(skew, defaultSkew)}, nil
}

func (p clocked) Schema() protocol.Schema { return p.schema.Schema }

func (p clocked) Skew() time.Duration { return p.skew }

// setExpires sets the expiry time to now + lease.
func (p clocked) setExpires(w *protocol.Write, now time.Time, lease time.Duration) {
	w.Set(p.expires, number(endOf(now, lease, p.step)))
}

// isExpired returns the condition that a record has expired by the clock of every client.
// Each of these clocks is wrong by at most the skew.
func (p clocked) isExpired(w *protocol.Write, now time.Time) string {
	last := now.Add(-p.skew).UnixMilli()/p.step.Milliseconds() - 1
	return w.Name(p.expires) + " <= " + w.Value(number(last))
}

// decodeExpires reads the expiry time, which every lock must have. A peer writes
// whatever number its clock and lease yield, even a fraction. A time before 1970
// has passed; a time after the year 9999 never comes.
func (p clocked) decodeExpires(d *decoder) time.Time {
	d.required(p.expires)
	return time.UnixMilli(d.clamped(p.expires, lastSecond*1000/p.step.Milliseconds()) * p.step.Milliseconds())
}

// lastSecond is the last second of the year 9999, the last that RFC 3339 can
// express.
const lastSecond = 253402300799
