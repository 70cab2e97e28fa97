package decide

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/leasehold-go/leasehold/internal/durations"
)

func at(mono, boot time.Duration) Instant { return Instant{Mono: mono, Boot: boot} }

func TestLockIsTrustedUntilSendTimePlusLeaseMinusSafetyMargin(t *testing.T) {
	until := TrustedUntil(at(100*time.Second, 500*time.Second), 20*time.Second, 2*time.Second)
	if want := at(118*time.Second, 518*time.Second); until != want {
		t.Fatalf("until %v, want %v", until, want)
	}
}

func TestDeadlineIsPastWhenMonotonicOrBootClockReachesIt(t *testing.T) {
	until := at(118*time.Second, 518*time.Second)
	for _, tc := range []struct {
		name string
		now  Instant
		past bool
	}{
		{"neither clock", at(117*time.Second, 517*time.Second), false},
		{"monotonic clock", at(118*time.Second, 517*time.Second), true},
		{"boot clock, after a suspend", at(100*time.Second, 518*time.Second), true},
		{"both clocks", at(130*time.Second, 600*time.Second), true},
	} {
		if got := tc.now.Past(until); got != tc.past {
			t.Errorf("%s: past %v, want %v", tc.name, got, tc.past)
		}
	}
}

func TestTrustedUntilDoesNotOverflowIfLeaseIsVeryLong(t *testing.T) {
	now := at(time.Hour, 1000*time.Hour)
	until := TrustedUntil(now, 1<<63-1, time.Second)
	if now.Past(until) {
		t.Fatalf("a lease of 292 years has ended at once: trusted until %v", until)
	}
}

func TestHolderStopsTrustingLockBeforeWaiterTakesOver(t *testing.T) {
	// The holder trusts its lock until lease - margin has passed since it sent its last write. A
	// waiter reads this write later, and then waits for a whole lease. The rates of the two clocks
	// must differ by less than margin/lease.
	rapid.Check(t, func(t *rapid.T) {
		lease := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "lease"))
		margin := time.Duration(rapid.Int64Range(1, int64(lease)-1).Draw(t, "margin"))
		sent := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "sent"))
		delay := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "delay"))
		until := TrustedUntil(at(sent, sent), lease, margin)
		firstSeen := sent + delay
		v := View{Known: true, Dead: DeadByVersion(firstSeen, lease), PollMin: time.Millisecond, PollMax: time.Second}
		move, wait := Next(v, firstSeen, rapid.Float64Range(0, 0.999).Draw(t, "u"))
		if move == TakeOver && firstSeen+wait < until.Mono+margin {
			t.Fatalf("taken over at %v, trusted until %v", firstSeen+wait, until.Mono)
		}
	})
}

func TestEarlierOfTwoInstantsIsComputedSeparatelyForEachClock(t *testing.T) {
	if got, want := at(1, 4).Earlier(at(2, 3)), at(1, 3); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWriteConditionOmitsOldestVersionsButNotCurrentVersion(t *testing.T) {
	tried := []string{"a", "b", "c", "d", "e"}
	for _, tc := range []struct {
		shown string
		most  int
		want  []string
	}{
		{"a", 9, tried},
		{"c", 9, []string{"c", "d", "e"}},
		{"e", 9, []string{"e"}},
		{"a", 3, []string{"a", "d", "e"}},
		{"c", 3, []string{"c", "d", "e"}},
		{"a", 1, []string{"a"}},
		{"another's", 9, tried},
		{"another's", 2, []string{"d", "e"}},
		{"", 5, tried},
	} {
		if got := StillToName(tried, tc.shown, tc.most); !slices.Equal(got, tc.want) {
			t.Errorf("%q shown, at most %d: %q, want %q", tc.shown, tc.most, got, tc.want)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFrontOfQueueIsMedianStartTimeOfItsWaiters(t *testing.T) {
	at := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			if s == 0 {
				times = append(times, time.Time{})
				continue
			}
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	for _, tc := range []struct {
		began []time.Time
		want  time.Time
	}{
		{nil, time.Time{}},
		{at(0, 0), time.Time{}},
		{at(7), at(7)[0]},
		{at(4, 3, 2, 1), at(3)[0]},
		{at(1, 2, 3, 4, 5, 6, 7, 8), at(5)[0]},
		{at(0, 4, 0, 3, 2, 1), at(3)[0]}, // a 0 is an unknown time, and is left out
	} {
		if got := Front(tc.began); !got.Equal(tc.want) {
			t.Errorf("%v: %v, want %v", tc.began, got, tc.want)
		}
	}
}

func TestWaiterOutsideQueuePausesForHalfOfExpectedWait(t *testing.T) {
	const (
		ms  = time.Millisecond
		far = time.Hour
	)
	for _, tc := range []struct {
		name string
		o    Outside
		age  time.Duration
		u    float64
		want time.Duration
	}{
		{"half of the estimated wait", Outside{Ahead: 4 * time.Second, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, 2 * time.Second},
		{"front at half speed", Outside{Ahead: time.Second, Moved: 500 * ms, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"front does not move", Outside{Waited: 10 * time.Second, Ahead: far, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"front at an eighth of full speed", Outside{Waited: 10 * time.Second, Ahead: far, Moved: 125 * ms, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"front a little faster", Outside{Waited: 10 * time.Second, Ahead: 400 * ms, Moved: 160 * ms, Seen: time.Second, Last: time.Minute}, 0, 0.5, 1250 * ms},
		{"front moves back", Outside{Waited: 10 * time.Second, Ahead: far, Moved: -1, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"after one read", Outside{Ahead: 400 * ms}, 0, 0.5, 200 * ms},
		{"after one read, upper limit", Outside{Ahead: far}, 0, 0.5, 250 * ms},
		{"after one read, lower limit", Outside{Ahead: 100 * ms, RoundTrip: 10 * ms}, 0, 0.5, 160 * ms},
		{"at most twice the last pause", Outside{Ahead: far, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, 2 * time.Second},
		{"lower limit by the round trip", Outside{Ahead: 0, Moved: time.Second, Seen: time.Second, Last: time.Second, RoundTrip: 10 * ms}, 0, 0.5, 160 * ms},
		{"lower limit by the grant's age", Outside{Ahead: 0, Moved: time.Second, Seen: time.Second, Last: time.Second}, 2 * time.Second, 0.5, 4 * time.Second},
		{"at least a 32nd of the wait", Outside{Waited: 32 * time.Second, Ahead: 0, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"overdue waiter", Outside{Waited: 32 * time.Second, Ahead: -far, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"at most twelve seconds", Outside{Waited: far, Ahead: far, Moved: 1, Seen: far, Last: far}, far, 0.5, 12 * time.Second},
		{"random: a quarter less", Outside{Waited: far}, far, 0, 9 * time.Second},
		{"random: a quarter more", Outside{Waited: far}, far, 1, 15 * time.Second},
	} {
		if got := tc.o.pause(tc.age, tc.u); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestWaiterThatFindsQueueFullIgnoresPollMinAndPollMax(t *testing.T) {
	v := View{Known: true, Dead: time.Hour, PollMin: time.Minute, PollMax: time.Minute, Outside: &Outside{Ahead: time.Second}}
	if move, wait := Next(v, 0, 0.5); move != Look || wait != time.Second/4 {
		t.Errorf("%v after %v", move, wait)
	}
}

const (
	longest  = time.Duration(math.MaxInt64)
	shortest = time.Duration(math.MinInt64)
)

// exactly returns the value of n as a Duration. A value outside the range of a
// Duration becomes the nearest Duration.
func exactly(n *big.Int) time.Duration {
	switch {
	case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return longest
	case n.Cmp(big.NewInt(math.MinInt64)) < 0:
		return shortest
	}
	return time.Duration(n.Int64())
}

func TestScaledDurationIsCappedInsteadOfOverflowing(t *testing.T) {
	for _, tc := range []struct {
		d    time.Duration
		by   float64
		want time.Duration
	}{
		{time.Second, 0.5, 500 * time.Millisecond}, {longest, 1, longest}, {longest, 2, longest},
		{longest, math.Inf(1), longest}, {-longest, 3, shortest}, {time.Second, 1e300, longest}, {0, math.Inf(1), 0},
	} {
		if got := durations.Scale(tc.d, tc.by); got != tc.want {
			t.Errorf("%v times %v is %v, want %v", tc.d, tc.by, got, tc.want)
		}
	}
}

// FuzzDurationArithmeticDoesNotOverflow checks that sums and products of durations equal the
// exact results, limited to the range of a Duration. It also checks that decisions with very
// long durations are still right.
func FuzzDurationArithmeticDoesNotOverflow(f *testing.F) {
	edges := []int64{0, 1, -1, int64(time.Second), math.MaxInt64, math.MaxInt64/2 + 1, math.MinInt64, math.MinInt64 + 1}
	for _, a := range edges {
		for _, b := range edges {
			f.Add(a, b, int64(time.Hour), 0.75)
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c int64, u float64) {
		da, db := time.Duration(a), time.Duration(b)
		x, y := big.NewInt(a), big.NewInt(b)
		for _, of := range []struct {
			what string
			got  time.Duration
			want *big.Int
		}{
			{"sum", durations.Sum(da, db), new(big.Int).Add(x, y)},
			{"difference", durations.Less(da, db), new(big.Int).Sub(x, y)},
			{"product", durations.Times(da, b), new(big.Int).Mul(x, y)},
			{"number of milliseconds", durations.Times(time.Millisecond, a), new(big.Int).Mul(x, big.NewInt(1e6))},
		} {
			if want := exactly(of.want); of.got != want {
				t.Errorf("the %s of %d and %d is %d, want %d", of.what, a, b, of.got, want)
			}
		}
		if u < 0 || u >= 1 || math.IsNaN(u) {
			return
		}
		// From here on, the fuzzed numbers are clock readings and lengths of leases.
		now, lease := time.Duration(max(a, math.MinInt64/2)), time.Duration(max(b, 1))
		margin, long := lease/10, time.Duration(max(c, 0))
		at := Instant{Mono: now, Boot: now}
		until := TrustedUntil(at, lease, margin)
		if lease > 10 && at.Past(until) && now < longest {
			t.Errorf("at %d a lease of %d is over before it begins", a, lease)
		}
		if dead := DeadByVersion(now, lease); dead < until.Mono || dead < now || durations.Less(dead, now) != min(lease, durations.Less(longest, now)) {
			t.Errorf("a holder with a lease of %d, trusted until %d, is dead at %d", lease, until.Mono, dead)
		}
		if dead := DeadByVersion(now, durations.Times(lease, 2)); dead < DeadByVersion(now, lease) {
			t.Errorf("with twice the lease %d a holder is dead earlier, at %d", lease, dead)
		}
		expires, wall := time.Unix(a/1e9, 0), time.Unix(0, c)
		over := !wall.Before(expires.Add(durations.Sum(lease, long)))
		if dead := DeadByClock(expires, lease, long, wall, now); dead <= now && !over && now < longest || dead > now && over {
			t.Errorf("dead at %d, now %d; expired by every clock: %t", dead, now, over)
		}
		view := View{Known: true, Grant: time.Duration(c), Dead: DeadByVersion(now, lease), PollMin: 1, PollMax: lease}
		if move, wait := Next(view, now, u); wait < 0 || move == TakeOver && durations.Sum(now, wait) < view.Dead {
			t.Errorf("%v after %v, though the holder is dead at %v", move, wait, view.Dead)
		}
		for what, pause := range map[string]time.Duration{
			"pause": Pause(time.Duration(c), 1, lease, u), "longest pause": Pause(long, lease, lease, 1), "back off": Backoff(int(long%30), long, u),
			"first renewal": FirstRenewal(lease, long, u), "next renewal": NextRenewal(lease, time.Duration(c), long, c%2 == 0, u),
			"retry": RenewalRetry(int(long%30), lease, long, u), "deadline": RenewalDeadline(long),
		} {
			if pause < 0 {
				t.Errorf("%s of %v", what, pause)
			}
		}
	})
}
