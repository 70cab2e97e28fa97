package renewals

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const trust = 18 * time.Second

// table answers the attempts of a test, and keeps when they came.
type table struct {
	q     *Queue
	began time.Time

	mu       sync.Mutex
	sent     []string
	at       map[string]time.Duration // the last
	inFlight int
	most     int
}

// inBubble runs a test with a queue of that many places, and without chance.
func inBubble(t *testing.T, places int, test func(t *testing.T, b *table)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run := func(fn func()) { go fn() }
		test(t, &table{q: New(places, run, func() float64 { return 0.5 }), began: time.Now(), at: map[string]time.Duration{}})
	})
}

// lease adds a lease that is due after three quarters of every, whose attempts
// take that long and come to that.
func (b *table) lease(name string, every, left, takes time.Duration, out Outcome) *Lease {
	var l *Lease
	l = b.q.Add(Times{Every: every, Trust: trust}, left, func() Outcome {
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

// elapse lets virtual time pass.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func remove(q *Queue, leases ...*Lease) {
	for _, l := range leases {
		q.Remove(l)
	}
	elapse(time.Minute)
}

func TestOfTheLeasesThatAreDueTheOneWithTheLeastTrustLeftGoesFirst(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		busy := b.lease("busy", 4*time.Second, trust, 400*time.Millisecond, Renewed) // from 3 s on
		early := b.lease("early", 4100*time.Millisecond, trust, 0, Renewed)
		late := b.lease("late", 4200*time.Millisecond, 14*time.Second, 0, Renewed)
		elapse(4 * time.Second)
		if want := []string{"busy", "late", "early"}; !slices.Equal(b.sent, want) {
			t.Errorf("sent %v, want %v", b.sent, want)
		}
		remove(b.q, busy, early, late)
	})
}

func TestAnAttemptThatHangsGivesUpItsPlaceAfterAQuarterOfItsDeadline(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		hangs := b.lease("hangs", 4*time.Second, trust, 2*time.Second, Silent) // from 3 s on
		other := b.lease("other", 4100*time.Millisecond, trust, 0, Renewed)
		elapse(4 * time.Second)
		if b.at["other"] != 3500*time.Millisecond {
			t.Errorf("the other was sent after %v", b.at["other"])
		}
		remove(b.q, hangs, other)
	})
}

func TestLeasesWithoutAnAnswerHaveHalfOfThePlaces(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, b *table) {
		var leases []*Lease
		for range 100 {
			leases = append(leases, b.lease("hangs", time.Second, time.Hour, 2*time.Second, Silent))
		}
		elapse(time.Minute)
		for range 50 {
			began := time.Since(b.began)
			l := b.lease("other", 133*time.Millisecond, trust, 0, Renewed)
			elapse(100 * time.Millisecond) // due by then
			if b.at["other"] < began {
				t.Fatal("a place is kept from a lease whose requests are answered")
			}
			b.q.Remove(l)
		}
		if b.most > 4*4 {
			t.Errorf("%d in flight, with 4 places", b.most)
		}
		remove(b.q, leases...)
	})
}

func TestALeaseThatWaitsForAWriteOfItsOwnLockTakesNoPlace(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		var waits *Lease
		waits = b.q.Add(Times{Every: 4 * time.Second, Trust: trust}, trust, func() Outcome { // after 3 s
			b.q.Waits(waits)
			time.Sleep(time.Second)
			return Failed
		})
		other := b.lease("other", 4100*time.Millisecond, trust, 0, Renewed)
		elapse(3500 * time.Millisecond)
		if b.at["other"] != 3075*time.Millisecond {
			t.Errorf("the other was sent after %v", b.at["other"])
		}
		remove(b.q, waits, other)
	})
}

func TestALeaseThatWasNotSentWhenItWasDueGoesToARandomPlaceOfThePeriod(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		l := b.lease("late", 2*time.Second, trust, 0, Renewed)
		elapse(8 * time.Second) // it was sent after 1.5, 2.5 (as the first is in no place), 4.5 and 6.5 s
		busy := b.lease("busy", 4*time.Second/10, trust, 10*time.Second, Silent)
		elapse(time.Second) // from 8.3 s on, for half a second
		if b.at["late"] != 8800*time.Millisecond {
			t.Fatalf("sent after %v", b.at["late"])
		}
		elapse(time.Second)
		if b.at["late"] != 9800*time.Millisecond { // half a period later
			t.Errorf("sent after %v", b.at["late"])
		}
		remove(b.q, l, busy)
	})
}

func TestALeaseWhoseTrustIsShortenedIsRenewedWithinAThirdOfIt(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		l := b.lease("lock", 4*time.Second, trust, 0, Renewed) // after 3 s
		elapse(time.Second)
		b.q.Lasts(l, 300*time.Millisecond)
		elapse(time.Second)
		if b.at["lock"] != 1100*time.Millisecond {
			t.Errorf("sent after %v", b.at["lock"])
		}
		b.q.Lasts(l, time.Hour) // which makes none later
		elapse(5 * time.Second)
		if b.at["lock"] != 3100*time.Millisecond {
			t.Errorf("sent after %v", b.at["lock"])
		}
		remove(b.q, l)
	})
}

func TestARemovedLeaseIsNotSent(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *table) {
		hangs := b.lease("hangs", 4*time.Second, trust, 2*time.Second, Silent)
		due := b.lease("due", 4100*time.Millisecond, trust, 0, Renewed)
		later := b.lease("later", 5*time.Second, trust, 0, Renewed)
		elapse(3200 * time.Millisecond)
		remove(b.q, hangs, due, later, due)
		if !slices.Equal(b.sent, []string{"hangs"}) {
			t.Errorf("sent %v", b.sent)
		}
		if b.q.taken != [len(b.q.taken)]int{} || b.q.demand.Usual > 1e-9 {
			t.Errorf("left behind: places %v, demand %v", b.q.taken, b.q.demand)
		}
	})
}
