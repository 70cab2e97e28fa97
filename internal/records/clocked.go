package records

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// defaultSkew is the default of the field MaxSkew in the layouts DynamoDLM and DyndbMutex. A
// default of zero would be unsafe: a client whose clock is one second fast would take over
// every lock one second early.
const defaultSkew = 2 * time.Second

// clocked is the common part of the protocols for layouts DynamoDLM and DyndbMutex. Their records
// have an expiry time, by the writer's clock. To another client, the holder is dead once that
// client's clock shows at least the expiry time + skew + step.
type clocked struct {
	schema
	expires string        // attribute with the expiry time
	step    time.Duration // unit in which the record stores the expiry time
	skew    time.Duration // the layout's MaxSkew
}

// newClocked returns the common part for the layout with the given name. If skew is zero,
// newClocked uses defaultSkew. It returns an error if skew is negative.
func newClocked(layout string, key schema, expires string, step, skew time.Duration) (clocked, error) {
	if skew < 0 {
		return clocked{}, fmt.Errorf("layout: %s: MaxSkew is %v: it must not be negative", layout, skew)
	}
	return clocked{schema: key, expires: expires, step: step, skew: cmp.Or(skew, defaultSkew)}, nil
}

func (p clocked) Schema() protocol.Schema { return p.schema.Schema }

func (p clocked) Skew() time.Duration { return p.skew }

// setExpires makes w set the expiry time to now + lease.
func (p clocked) setExpires(w *protocol.Write, now time.Time, lease time.Duration) {
	w.Set(p.expires, number(endOf(now, lease, p.step)))
}

// isExpired returns the condition that the record has expired even by the slowest client's clock.
// "now" is the time by this client's clock. The clocks of two clients may differ by up to p.skew.
func (p clocked) isExpired(w *protocol.Write, now time.Time) string {
	last := now.Add(-p.skew).UnixMilli()/p.step.Milliseconds() - 1
	return w.Name(p.expires) + " <= " + w.Value(number(last))
}

// decodeExpires returns a record's expiry time, or stores an error in d if there is none. The
// layout's library may write any number. A fraction is rounded up, and a time outside the years
// 1970 to 9999 becomes the nearest time inside.
func (p clocked) decodeExpires(d *decoder) time.Time {
	d.required(p.expires)
	return time.UnixMilli(d.clamped(p.expires, lastSecond*1000/p.step.Milliseconds()) * p.step.Milliseconds())
}

// lastSecond is the last second of the year 9999, as a Unix time. RFC 3339 cannot express a
// later second.
const lastSecond = 253402300799
