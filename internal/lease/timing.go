package lease

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/renewals"
)

// Timing is how long a lease lasts and is trusted, and how often it is renewed.
type Timing struct {
	Lease  time.Duration
	Margin time.Duration // time from the end of the trust to the expiry of the lease
	Every  time.Duration // time from one renewal to the next
	Skew   time.Duration // largest error of a wall clock; 0 if clients do not rely on wall clocks
}

// ShortestTrust is the shortest time for which a grant must be trusted. A grant that is trusted for
// less time could be lost before its first renewal is applied.
const ShortestTrust = 500 * time.Millisecond

// Usual returns the timing of a lease whose user has set neither Margin nor RenewEvery.
func Usual(lease, skew time.Duration) Timing {
	t := Timing{Lease: lease, Margin: lease / 10, Skew: skew}
	t.Every = min(lease/4, t.Trust()/3)
	return t
}

// Trust returns how long a grant or a renewal is trusted, counted from when the request was
// sent.
func (t Timing) Trust() time.Duration {
	return durations.Less(t.Lease, durations.Sum(t.Margin, t.Skew))
}

// TrustedFrom returns the end of the trust, counted from the time at which an attempt was sent. It
// assumes that the attempt is applied.
func (t Timing) TrustedFrom(sent decide.Instant) decide.Instant {
	return decide.TrustedUntil(sent, t.Lease, durations.Sum(t.Margin, t.Skew))
}

// Scaled returns the timing for another lease duration. Margin and Every change in proportion, but
// Skew does not, so a shorter lease is trusted for a smaller part of its duration. If Skew is not
// 0, Every is limited to a third of the trust: otherwise too few renewals could fit.
func (t Timing) Scaled(lease time.Duration) Timing {
	if lease == t.Lease {
		return t
	}
	ratio := float64(lease) / float64(t.Lease)
	t.Lease = lease
	t.Margin = durations.Scale(t.Margin, ratio)
	t.Every = durations.Scale(t.Every, ratio)
	if t.Skew > 0 {
		t.Every = min(t.Every, t.Trust()/3)
	}
	return t
}

// times returns the timing as package renewals needs it.
func (t Timing) times() renewals.Times { return renewals.Times{Every: t.Every, Trust: t.Trust()} }
