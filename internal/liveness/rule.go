package liveness

import (
	"cmp"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Rule decides when a holder is dead. All code that observes holders uses Rule, and no other
// code computes the end of an observed lease.
type Rule struct {
	Clocked bool          // records contain an expiry time
	Skew    time.Duration // largest error of this machine's wall clock; 0 if no bound of the error is known
	Step    time.Duration // unit in which records store expiry times; used only if Clocked
}

// RuleOf returns the Rule for the records of a layout.
func RuleOf(proto protocol.Protocol, caps layout.Capabilities) Rule {
	return Rule{Clocked: caps.Expiry == layout.WallClock, Skew: proto.Skew(), Step: caps.LeaseStep}
}

// deadAt returns the monotonic time when the holder of r is dead if it does not renew. That
// time may be in the past. The version of r was first seen at since. The wall clock showed
// wall at now. If the clocks of this client and of the holder are both bounded, the holder
// may be dead before this client has seen the version for a whole lease.
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

// GrantOf returns a string that differs between the grants of a key. It is the id of the
// grant, if the grant has one. Grants of other libraries have no id. For them GrantOf
// returns the owner, which stays the same while the holder renews, and may be empty. In
// layouts with an expiry time it returns the version instead: holders of those libraries
// never renew, so the version stays the same.
func GrantOf(r protocol.Record) string {
	if r.Lease > 0 {
		return cmp.Or(r.Grant, r.Owner)
	}
	return cmp.Or(r.Grant, r.Version)
}

// SessionRow decodes item as the row of a session. If item is nil, the row is missing, and
// SessionRow returns protocol.NoRow with missing as its lease.
func SessionRow(proto protocol.Native, item protocol.Item, missing time.Duration) (protocol.Record, error) {
	if item == nil {
		return protocol.NoRow(missing), nil
	}
	return proto.Session().Decode(item)
}
