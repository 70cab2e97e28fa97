package liveness

import (
	"cmp"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Rule decides when a holder is dead. All observers use it: no other code adds a lease to
// the time of a first reading.
type Rule struct {
	Clocked bool          // records have an expiry time
	Skew    time.Duration // the most that this machine's wall clock may be wrong by; 0 if the clock is not bounded
	Step    time.Duration // unit of expiry times; used only if Clocked
}

// RuleOf returns the rule of a layout.
func RuleOf(proto protocol.Protocol, caps layout.Capabilities) Rule {
	return Rule{Clocked: caps.Expiry == layout.WallClock, Skew: proto.Skew(), Step: caps.LeaseStep}
}

// deadAt returns when the holder of r is dead if it does not renew. That time may have
// passed. The version of r was first seen at since. The wall clock showed wall at now. If
// the clocks of this client and of the holder are both bounded, that time may come before
// this client has seen the version for a whole lease.
func (by Rule) deadAt(r protocol.Record, since, now time.Duration, wall time.Time) time.Duration {
	if by.Clocked {
		return decide.DeadByClock(r.ExpiresAt, by.Skew, by.Step, wall, now)
	}
	dead := decide.DeadByVersion(since, r.Lease)
	if by.Skew > 0 && !r.LeaseEnds.IsZero() {
		dead = min(dead, decide.DeadByClock(r.LeaseEnds, by.Skew, 0, wall, now))
	}
	return dead
}

// GrantOf returns a string that distinguishes one grant of a key from the next. If the
// grant has an id, it returns the id. Grants of other libraries have none. For them it
// returns the owner, which may be empty, and which stays the same while the holder renews.
// In layouts with an expiry time it returns the version instead. There the holders of other
// libraries never renew, so their version stays the same.
func GrantOf(r protocol.Record) string {
	if r.Lease > 0 {
		return cmp.Or(r.Grant, r.Owner)
	}
	return cmp.Or(r.Grant, r.Version)
}

// SessionRow decodes the row of a session. If item is nil, it returns protocol.NoRow with
// missing as the lease.
func SessionRow(proto protocol.Native, item protocol.Item, missing time.Duration) (protocol.Record, error) {
	if item == nil {
		return protocol.NoRow(missing), nil
	}
	return proto.Session().Decode(item)
}
