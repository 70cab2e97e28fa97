package lease

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/renewals"
)

// Timing is how long a lease lasts and is trusted, and how often it is renewed.
type Timing struct {
	Lease  time.Duration
	Margin time.Duration // trust ends so much before the lease
	Every  time.Duration // from one renewal to the next
	Skew   time.Duration // by which the wall clock may be wrong, where others go by it; 0: nobody does
}

// Trust is how long a grant or a renewal is trusted.
func (t Timing) Trust() time.Duration { return decide.Less(t.Lease, decide.Sum(t.Margin, t.Skew)) }

// TrustedFrom is until when an attempt that was sent at sent is trusted, if it is
// applied.
func (t Timing) TrustedFrom(sent decide.Instant) decide.Instant {
	return decide.TrustedUntil(sent, t.Lease, decide.Sum(t.Margin, t.Skew))
}

// Scaled returns the timing of another lease, in the same proportions. The allowance
// for clocks that differ stays.
func (t Timing) Scaled(lease time.Duration) Timing {
	if lease == t.Lease {
		return t
	}
	ratio := float64(lease) / float64(t.Lease)
	t.Lease = lease
	t.Margin = decide.Scale(t.Margin, ratio)
	t.Every = decide.Scale(t.Every, ratio)
	if t.Skew > 0 {
		t.Every = min(t.Every, t.Trust()/3)
	}
	return t
}

// Times are the timing for a queue of renewals.
func (t Timing) Times() renewals.Times { return renewals.Times{Every: t.Every, Trust: t.Trust()} }
