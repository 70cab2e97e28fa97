package renewals

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const trust = 18 * time.Second

// table simulates a table: it receives the attempts of a Scheduler, determines their
// outcomes, and records when each attempt was sent.
type table struct {
	q     *Scheduler
	began time.Time

	mu       sync.Mutex
	sent     []string
	at       map[string]time.Duration // time of the last attempt, by the name of the lease
	inFlight int
	most     int
}

// inBubble runs a test with a new Scheduler. The parameter "places" is the number of the
// Scheduler's slots. The Scheduler uses a constant instead of random numbers.
func inBubble(t *testing.T, places int, test func(t *testing.T, b *table)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run := func(fn func()) { go fn() }
		test(t, &table{q: New(places, run, func() float64 { return 0.5 }), began: time.Now(), at: map[string]time.Duration{}})
	})
}

// lease adds a lease that is renewed with the given period, "every". The first attempt is due after
// three quarters of that period. Each attempt lasts for the duration "takes", and has the outcome
// out.
func (b *table) lease(name string, every, left, takes time.Duration, out Outcome) *Lease {
	// Hold b.mu until l is set. If the lease is due immediately, the attempt waits for b.mu before
	// it reads l.
	b.mu.Lock()
	defer b.mu.Unlock()
	var l *Lease
	l = b.q.Add(Times{Every: every, Trust: trust}, left, 0, func() Outcome {
		b.mu.Lock()
		b.sent, b.at[name] = append(b.sent, name), time.Since(b.began)
		b.inFlight++
		b.most = max(b.most, b.inFlight)
		b.mu.Unlock()
		time.Sleep(takes)
		b.mu.Lock()
		b.inFlight--
		b.mu.Unlock()
		if out == Renewed {
			b.q.Renewed(l, Times{Every: every, Trust: trust}, takes, trust-takes)
		}
		return out
	})
	return l
}

// leases adds n leases with the same name and the other given parameters. See the method lease.
func (b *table) leases(n int, name string, every, left, takes time.Duration, out Outcome) []*Lease {
	all := make([]*Lease, n)
	for i := range all {
		all[i] = b.lease(name, every, left, takes, out)
	}
	return all
}

// lastSent returns when the last attempt of the lease with this name was sent.
func (b *table) lastSent(name string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at[name]
}

// allSent returns the names of leases, one for each attempt, in the order in which the
// attempts were sent.
func (b *table) allSent() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sent)
}

// mostInFlight returns the largest number of attempts that were in flight at the same time.
func (b *table) mostInFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// elapse lets the time d pass in the bubble, and waits until all goroutines block.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want fails the test unless got and want are deeply equal. The parameter "what" names the value.
func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func remove(q *Scheduler, leases ...*Lease) {
	for _, l := range leases {
		q.Remove(l)
	}
	elapse(time.Minute)
}

func TestDueLeaseThatExpiresSoonestIsRenewedFirst(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		busy := b.lease("busy", 4*time.Second, trust, 400*time.Millisecond, Renewed) // its first attempt is sent at 3 s
		early := b.lease("early", 4100*time.Millisecond, trust, 0, Renewed)
		late := b.lease("late", 4200*time.Millisecond, 14*time.Second, 0, Renewed)
		elapse(4 * time.Second)
		want(t, "sent", b.allSent(), []string{"busy", "late", "early"})
		remove(b.q, busy, early, late)
	})
}

func TestHangingRenewalLosesItsSlotToAnotherRenewal(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		hangs := b.lease("hangs", 4*time.Second, trust, 2*time.Second, Silent) // its first attempt is sent at 3 s
		other := b.lease("other", 4100*time.Millisecond, trust, 0, Renewed)
		elapse(4 * time.Second)
		want(t, "other sent after", b.lastSent("other"), 3500*time.Millisecond)
		remove(b.q, hangs, other)
	})
}

func TestUnansweredRenewalsTakeAtMostHalfOfSlots(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, b *table) {
		leases := b.leases(100, "hangs", time.Second, time.Hour, 2*time.Second, Silent)
		elapse(time.Minute)
		for range 50 {
			began := time.Since(b.began)
			l := b.lease("other", 133*time.Millisecond, trust, 0, Renewed)
			elapse(100 * time.Millisecond) // the lease added above is due within 100 ms
			if b.lastSent("other") < began {
				t.Fatal("no slot was free for a lease whose requests are answered")
			}
			b.q.Remove(l)
		}
		if b.mostInFlight() > 4*4 {
			t.Errorf("%d attempts in flight with 4 slots", b.mostInFlight())
		}
		remove(b.q, leases...)
	})
}

func TestRenewalHasNoSchedulerSlotWhileItWaitsForOtherWrite(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		var waits atomic.Pointer[Lease]
		waits.Store(b.q.Add(Times{Every: 4 * time.Second, Trust: trust}, trust, 0, func() Outcome { // its first attempt is due after 3 s
			b.q.Waits(waits.Load())
			time.Sleep(time.Second)
			return Failed
		}))
		other := b.lease("other", 4100*time.Millisecond, trust, 0, Renewed)
		elapse(3500 * time.Millisecond)
		want(t, "other sent after", b.lastSent("other"), 3075*time.Millisecond)
		remove(b.q, waits.Load(), other)
	})
}

func TestTimeFromDelayedRenewalToNextRenewalIsRandom(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		l := b.lease("late", 2*time.Second, trust, 0, Renewed)
		// The lease is renewed after 1.5, 2.5, 4.5 and 6.5 s. The second renewal of a new lease is
		// due at a random time of the period. Here this is the middle, because chance returns 0.5.
		elapse(8 * time.Second)
		busy := b.lease("busy", 4*time.Second/10, trust, 10*time.Second, Silent)
		elapse(time.Second) // the lease "busy" holds the only slot from 8.3 s to 8.8 s
		want(t, "late sent after", b.lastSent("late"), 8800*time.Millisecond)
		elapse(time.Second)
		want(t, "late sent after", b.lastSent("late"), 9800*time.Millisecond) // the next renewal comes half a period after the late one
		remove(b.q, l, busy)
	})
}

func TestRenewalBecomesDueSoonerIfLeaseIsShortened(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		l := b.lease("lock", 4*time.Second, trust, 0, Renewed) // its first attempt is due after 3 s
		elapse(time.Second)
		b.q.Lasts(l, 300*time.Millisecond)
		elapse(time.Second)
		want(t, "lock sent after", b.lastSent("lock"), 1100*time.Millisecond)
		b.q.Lasts(l, time.Hour) // if the trust becomes longer, the renewal that is due does not move
		elapse(5 * time.Second)
		want(t, "lock sent after", b.lastSent("lock"), 3100*time.Millisecond)
		remove(b.q, l)
	})
}

func TestLeaseRemovedFromSchedulerIsNotRenewed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		hangs := b.lease("hangs", 4*time.Second, trust, 2*time.Second, Silent)
		due := b.lease("due", 4100*time.Millisecond, trust, 0, Renewed)
		later := b.lease("later", 5*time.Second, trust, 0, Renewed)
		elapse(3200 * time.Millisecond)
		remove(b.q, hangs, due, later, due)
		want(t, "sent", b.allSent(), []string{"hangs"})
		if b.q.taken != [len(b.q.taken)]int{} || b.q.demand.Usual > 1e-9 {
			t.Errorf("left behind: slots %v, demand %v", b.q.taken, b.q.demand)
		}
	})
}

func TestLeaseWithNoTimeLeftIsRenewedImmediately(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		l := b.lease("lock", 4*time.Second, 0, time.Second, Silent)
		elapse(0)
		want(t, "sent", b.allSent(), []string{"lock"})
		want(t, "lock sent after", b.lastSent("lock"), 0)
		remove(b.q, l)
	})
}

func TestThrottledRenewalSlowsOtherRenewals(t *testing.T) {
	inBubble(t, 100, func(t *testing.T, b *table) {
		throttled := b.lease("throttled", 1200*time.Millisecond, trust, 0, Throttled) // its first attempt is sent after 0.9 s
		others := b.leases(40, "other", 4*time.Second, trust, 0, Renewed)             // all are due after 3 s; the usual rate is 10 a second
		elapse(time.Second)
		b.q.Remove(throttled)
		before := len(b.allSent())
		elapse(2 * time.Second)
		elapse(time.Second)
		// After the throttled renewal, the Scheduler has lowered the rate by a fifth, to 8 a second.
		// Since then, the rate has risen a little.
		if sent := len(b.allSent()) - before; sent < 8 || sent > 10 {
			t.Errorf("%d were sent in the second in which all were due", sent)
		}
		remove(b.q, others...)
	})
}

// This test simulates a hot partition: DynamoDB throttles every attempt for one lease, while other
// leases are always due.
func TestThrottledLeaseGetsAtMostOneOfFiveAttempts(t *testing.T) {
	inBubble(t, 100, func(t *testing.T, b *table) {
		throttled := b.lease("throttled", 400*time.Millisecond, trust, 0, Throttled)
		others := b.leases(40, "other", 4*time.Second, trust, 0, Renewed) // their first attempts are due after 3 s
		elapse(2999 * time.Millisecond)
		before := len(b.allSent())
		elapse(3 * time.Second)
		var between []int // number of other attempts before each throttled attempt
		sent := 0
		for _, name := range b.allSent()[before:] {
			if name != "throttled" {
				sent++
				continue
			}
			between, sent = append(between, sent), 0
		}
		want(t, "others sent before each throttled attempt", between, []int{4, 4, 4})
		remove(b.q, append(others, throttled)...)
	})
}

// When the error of a transaction conflict arrives, the other transaction has ended, so the next
// attempt can succeed immediately. The causes of other failures may last.
func TestRenewalIsRepeatedImmediatelyOnlyAfterTransactionConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		out  Outcome
		sent int // number of attempts that were sent when the first attempt has ended
	}{
		"in conflict": {Conflict, 2}, "failed": {Failed, 1}, "without an answer": {Silent, 1}, "throttled": {Throttled, 1},
	} {
		inBubble(t, 2, func(t *testing.T, b *table) {
			l := b.lease("lock", 4*time.Second, trust, 0, tc.out)
			elapse(3 * time.Second)
			want(t, name+": sent at once", len(b.allSent()), tc.sent)
			elapse(100 * time.Millisecond)
			if sent := len(b.allSent()); sent <= tc.sent {
				t.Errorf("%s: %d were sent after a pause", name, sent)
			}
			remove(b.q, l)
		})
	}
}

// Waited must return true while a renewal waits for a slot, and until that renewal has finished.
// Afterwards it must return false: otherwise a later pause of the process would not be reported as
// the reason for a loss.
func TestDelayedRenewalCountsAsWaitingUntilItEnds(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		busy := b.lease("busy", 4*time.Second, trust, 300*time.Millisecond, Renewed) // its first attempt is sent at 3 s
		l := b.lease("lock", 4100*time.Millisecond, trust, 100*time.Millisecond, Renewed)
		for _, at := range []struct {
			after  time.Duration
			waited bool
			while  string
		}{
			{3 * time.Second, false, "it is not due"},
			{150 * time.Millisecond, true, "another lease has the slot"},
			{200 * time.Millisecond, true, "it is in flight"},
			{100 * time.Millisecond, false, "it is renewed"},
		} {
			elapse(at.after)
			want(t, at.while+": waited", b.q.Waited(l), at.waited)
		}
		remove(b.q, busy, l)
	})
}
