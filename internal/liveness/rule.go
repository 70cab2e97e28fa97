package liveness

import (
	"cmp"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Rule says when a holder is dead. Whoever wants to know asks it: nobody else adds a
// lease to a first sight.
type Rule struct {
	Clocked bool          // records say when they expire
	Skew    time.Duration // by how much this machine's wall clock may be wrong; 0: nobody vouches for it
	Step    time.Duration // Clocked: what expiry times are rounded to
}

// RuleOf returns the rule of a layout.
func RuleOf(proto protocol.Protocol, caps layout.Capabilities) Rule {
	return Rule{Clocked: caps.Expiry == layout.WallClock, Skew: proto.Skew(), Step: caps.LeaseStep}
}

// deadAt is when the holder of r is dead, or has been since, if it does not renew. Its
// version was first seen at since. The wall clock showed wall at now. Whose client vouches
// for its wall clock, as the holder's does, need not have seen the version for a lease.
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

// GrantOf tells one grant of a key from the next. Those of other libraries have no id.
// Their owner, which may be nameless, stays the same while they renew; where records say
// when they expire they never renew, and their version stays.
func GrantOf(r protocol.Record) string {
	if r.Lease > 0 {
		return cmp.Or(r.Grant, r.Owner)
	}
	return cmp.Or(r.Grant, r.Version)
}

// SessionRow is what item, nil for none, shows as the row of a session. One that is not
// there counts as that of a client with the lease missing.
func SessionRow(proto protocol.Native, item protocol.Item, missing time.Duration) (protocol.Record, error) {
	if item == nil {
		return protocol.NoRow(missing), nil
	}
	return proto.Session().Decode(item)
}
