package liveness_test

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// start is the time at which the tests begin to observe a record.
var start = time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)

func at(d time.Duration) liveness.Reading {
	return liveness.Reading{Asked: start.Add(d), Answered: start.Add(d + 10*time.Millisecond)}
}

func TestHolderIsDeadOnlyIfReadBeganAfterLeaseEnded(t *testing.T) {
	by, r := liveness.Rule{}, protocol.Record{Version: "v1", Lease: lease}
	first := by.Next(liveness.Beat{}, r, at(0))
	seen := at(0).Answered
	for _, c := range []struct {
		asked time.Time
		dead  bool
	}{
		{seen.Add(lease - 1), false}, // the read began before the lease ended, so the holder may have renewed since
		{seen.Add(lease), true},
	} {
		if b := by.Next(first, r, liveness.Reading{Asked: c.asked, Answered: seen.Add(lease + time.Second)}); b.Dead != c.dead || !b.Until.Equal(seen.Add(lease)) {
			t.Errorf("asked %v after the first sight: dead %v, until %v", c.asked.Sub(seen), b.Dead, b.Until.Sub(seen))
		}
	}
	r.Version = "v2"
	if b := by.Next(first, r, at(9*time.Second)); b.Until != at(9*time.Second).Answered.Add(lease) || b.Renewals != 1 {
		t.Errorf("renewed: until %v, %d renewals", b.Until, b.Renewals)
	}
}

func TestHolderIsDeadAfterExpiryPlusMaxSkewPlusRounding(t *testing.T) {
	by := liveness.Rule{Clocked: true, Skew: 2 * time.Second, Step: time.Second}
	r := protocol.Record{Version: "v", GrantedAt: start, ExpiresAt: start.Add(lease)}
	end := start.Add(lease + 3*time.Second)
	b := by.Next(liveness.Beat{}, r, at(time.Second))
	if b.Dead || !b.Until.Equal(end) || b.Lease != lease+3*time.Second {
		t.Errorf("dead %v, until %v, lease %v", b.Dead, b.Until, b.Lease)
	}
	for _, later := range []time.Duration{0, time.Hour} {
		if b = by.Next(b, r, liveness.Reading{Asked: end.Add(later), Answered: end.Add(later)}); !b.Dead || !b.Until.Equal(end) {
			t.Errorf("%v after it has expired by every clock: %+v", later, b)
		}
	}
}

func TestMissingSessionRowRestartsObservation(t *testing.T) {
	by, r := liveness.Rule{}, protocol.Record{Version: "v1", Lease: time.Hour}
	b := by.Next(liveness.Beat{}, r, at(0))
	b = by.Next(b, protocol.NoRow(lease), at(time.Minute))
	if b.Dead || b.Renewals != 0 || !b.Until.Equal(at(time.Minute).Answered.Add(lease)) {
		t.Errorf("as soon as it is gone: %+v", b)
	}
	if b = by.Next(b, protocol.NoRow(lease), at(time.Minute+lease)); b.Dead {
		t.Error("dead before a lease has passed")
	}
	if b = by.Next(b, protocol.NoRow(lease), at(time.Minute+lease+time.Second)); !b.Dead {
		t.Error("alive after a lease without a row")
	}
}

func TestBoundedClockUsesEarlierOfTwoDeadlines(t *testing.T) {
	r := protocol.Record{Version: "v", Lease: lease, LeaseEnds: start.Add(5 * time.Second)}
	for name, c := range map[string]struct {
		by    liveness.Rule
		ends  time.Time
		until time.Time
	}{
		"an end that is near":     {liveness.Rule{Skew: time.Second}, start.Add(5 * time.Second), start.Add(6 * time.Second)},
		"an end that is over":     {liveness.Rule{Skew: time.Second}, start.Add(-time.Hour), start.Add(time.Second - time.Hour)},
		"an end that is far":      {liveness.Rule{Skew: time.Second}, start.Add(time.Hour), at(0).Answered.Add(lease)},
		"a record that says none": {liveness.Rule{Skew: time.Second}, time.Time{}, at(0).Answered.Add(lease)},
		"nobody vouches":          {liveness.Rule{}, start.Add(-time.Hour), at(0).Answered.Add(lease)},
	} {
		r.LeaseEnds = c.ends
		if b := c.by.Next(liveness.Beat{}, r, at(0)); !b.Until.Equal(c.until) || b.Dead != c.until.Before(start) {
			t.Errorf("%s: until %v, dead %v", name, b.Until.Sub(start), b.Dead)
		}
	}
}
