package liveness_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
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

func TestObserverWithBoundedClockUsesEarlierOfTwoDeadlines(t *testing.T) {
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

func TestLockIsTakenOverAfterSessionIsMarkedDead(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, holderWire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		row := w.Sessions()[0]
		holderWire.SetFault(lab.Cut)
		// The waiter has no session of its own: it must read the session of the holder.
		waiter, wire := w.Client(lab.Config())
		var marked bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && strings.Contains(string(r.Body), lab.Text(w.Item("job"), "recordVersionNumber")) {
				marked = lab.Text(w.Item(row), "dead") == "1"
			}
			return r.Send()
		})
		lock := w.Acquire(waiter, "job")
		if !marked {
			t.Error("taken over before the session was marked dead")
		}
		if _, ok := w.Item(row)["expiresAt"]; !ok {
			t.Error("nothing collects the dead session's row")
		}
		w.Release(lock)
	})
}

func TestTryAcquireContinuesSessionObservationOfEarlierCall(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config())
		lab.WantErr(t, "first try", lab.ErrorOf(c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
		lab.Elapse(20 * time.Second)
		other, _ := w.Client(lab.Config()) // a new client: it must observe the session for a whole lease
		lab.WantErr(t, "first try of another client", lab.ErrorOf(other.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
		lock := lab.Must(c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()))(t)
		w.Release(lock)
	})
}

func TestSessionIsIgnoredIfAnotherOwnerHoldsLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.SharedConfig())
		w.Acquire(holder, "job")
		// The Java client does not know sessions. Its grant keeps the attribute with the
		// former holder's session in the record.
		w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("java"), "recordVersionNumber": lab.Str("j1"), "leaseDuration": lab.Str("20000")})
		began := time.Now()
		_, _, lock := w.Holding(lab.Config())
		lab.WantTook(t, "taken over after", began, 20*time.Second, 22*time.Second)
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestSessionOfEarlierGrantIsIgnored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		former, _ := w.Client(lab.SharedConfig())
		w.Release(w.Acquire(former, "job"))
		if err := former.Close(t.Context()); err != nil { // the session has ended, but the record still contains its id
			t.Fatal(err)
		}
		_, _, lock := w.Holding(lab.Config())
		if lab.Text(w.Item("job"), "session") == "" {
			t.Fatal("nothing is left of the session: this test tests nothing")
		}
		c, _ := w.Client(lab.Config())
		lab.WantErr(t, "try of a held key", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		w.Release(lock)
	})
}
