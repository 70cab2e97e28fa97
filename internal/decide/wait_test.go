package decide

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWaiterPollsUntilLeaseEndsAndThenTakesOver(t *testing.T) {
	const second = time.Second
	held := View{Known: true, Grant: 10 * second, Dead: DeadByVersion(10*second, 20*second), Looked: 29*second + second/2, PollMin: 25 * time.Millisecond, PollMax: 500 * time.Millisecond}
	with := func(change func(*View)) View {
		v := held
		change(&v)
		return v
	}
	for _, tc := range []struct {
		name string
		view View
		now  time.Duration
		u    float64
		move Move
		wait time.Duration
	}{
		{"nothing known: write, do not read", View{}, 0, 0.5, Take, 0},
		{"free", with(func(v *View) { v.Free = true }), 11 * second, 0.5, Take, 0},
		{"own attempt that nobody holds", with(func(v *View) { v.Ours = true }), 11 * second, 0.5, TakeOver, 0},
		{"young grant: short pause", held, 10 * second, 0.5, Look, 25 * time.Millisecond},
		{"old grant: long pause", with(func(v *View) { v.Grant = 0 }), 11 * second, 0.5, Look, 500 * time.Millisecond},
		{"a moment before the lease ends", held, 30*second - 10*time.Millisecond, 0.9, TakeOver, 10 * time.Millisecond},
		{"a pause that ends with the lease", held, 29*second + second/2, 0.5, TakeOver, second / 2},
		{"the lease has ended", held, 30 * second, 0.5, TakeOver, 0},
		{"the lease ends now, long after the last read", with(func(v *View) { v.Looked = 28 * second }), 30 * second, 0.5, Look, 0},
		{"the lease has ended, a second after the last read", held, 30*second + second/2, 0.5, TakeOver, 0},
		{"the lease has ended, more than a second after the last read", held, 30*second + second/2 + 1, 0.5, Look, 0},
		{"an endless lease", with(func(v *View) { v.Dead = DeadByVersion(10*second, 1<<63-1) }), 1000 * time.Hour, 0.5, Look, 500 * time.Millisecond},
	} {
		move, wait := Next(tc.view, tc.now, tc.u)
		if move != tc.move || wait != tc.wait {
			t.Errorf("%s: %v after %v, want %v after %v", tc.name, move, wait, tc.move, tc.wait)
		}
	}
}

func TestHolderAppearsDeadOneLeaseAfterLastWrite(t *testing.T) {
	now := time.Date(2026, 7, 1, 2, 17, 0, 0, time.UTC)
	for _, tc := range []struct {
		what    string
		written time.Time
		lease   time.Duration
		want    bool
	}{
		{"a night ago", now.Add(-24 * time.Hour), 20 * time.Second, true},
		{"a lease ago", now.Add(-20 * time.Second), 20 * time.Second, true},
		{"less than a lease ago", now.Add(-20*time.Second + 1), 20 * time.Second, false},
		{"just now", now, 20 * time.Second, false},
		{"by a clock that is ahead", now.Add(time.Hour), 20 * time.Second, false},
		{"at an unknown time", time.Time{}, 20 * time.Second, false},
		{"with an endless lease", now.Add(-24 * time.Hour), 1<<63 - 1, false},
	} {
		if got := LooksDead(tc.written, tc.lease, now); got != tc.want {
			t.Errorf("written %s: %t", tc.what, got)
		}
	}
}

func TestTakeoverRequiresSameRecordVersionForWholeLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := View{
			Known: true, PollMin: 25 * time.Millisecond, PollMax: 500 * time.Millisecond,
		}
		since := time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "since"))
		lease := time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "lease"))
		v.Dead = DeadByVersion(since, lease)
		v.Grant = since - time.Duration(rapid.Int64Range(0, int64(since)).Draw(t, "older"))
		now := since + time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "later"))
		lately := rapid.Bool().Draw(t, "looked lately")
		if v.Looked = now; !lately {
			v.Looked = now - time.Second - 1
		}
		move, wait := Next(v, now, rapid.Float64Range(0, 0.999).Draw(t, "u"))
		if wait < 0 {
			t.Fatalf("waits %v", wait)
		}
		if over := now+wait >= since+lease; over != (move == TakeOver) && (lately || move == TakeOver) {
			t.Fatalf("move %v at %v, lease over %v", move, now+wait, over)
		}
	})
}

func TestTakeoverByWallClockWaitsAtLeastMaxSkewAfterExpiry(t *testing.T) {
	wall := time.Unix(1_764_230_400, 0)
	for _, tc := range []struct {
		// expires is the record's expiry time minus the time of the wall clock.
		expires time.Duration
		// want is the time from which the holder counts as dead, minus the monotonic time now.
		want time.Duration
	}{
		{20 * time.Second, 23 * time.Second},
		{-2 * time.Second, time.Second},
		{-3 * time.Second, 0},
		{-time.Hour, 3*time.Second - time.Hour},
	} {
		if got := DeadByClock(wall.Add(tc.expires), 2*time.Second, time.Second, wall, time.Hour); got != time.Hour+tc.want {
			t.Errorf("expires in %v: dead in %v, want %v", tc.expires, got-time.Hour, tc.want)
		}
	}
}

func TestBackoffCeilingDoublesUpToLimit(t *testing.T) {
	for n, want := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
		if got := Backoff(n, time.Second, 1); got != want*time.Millisecond {
			t.Errorf("retry %d: %v, want %vms", n, got, want)
		}
	}
	if got := Backoff(1000, time.Second, 1); got != time.Second {
		t.Errorf("retry 1000: %v", got)
	}
}

func TestSlowRequestBarelyRaisesRoundTripEstimate(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ known, took, want time.Duration }{
		{8 * ms, 8 * ms, 8 * ms},
		{8 * ms, 16 * ms, 9 * ms},
		{8 * ms, 3 * time.Second, 9 * ms},
		{8 * ms, 4 * ms, 7 * ms},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := RoundTrip(tc.known, tc.took); got != tc.want {
			t.Errorf("%v, then a request of %v: %v, want %v", tc.known, tc.took, got, tc.want)
		}
	}
}

func TestWaiterFurtherBackInQueuePausesLonger(t *testing.T) {
	const rt = 5 * time.Millisecond
	for _, tc := range []struct {
		ahead     int
		age, want time.Duration
	}{
		{0, 0, rt},
		{0, 100 * time.Millisecond, 10 * time.Millisecond},
		{0, 2500 * time.Millisecond, 250 * time.Millisecond},
		{0, 5 * time.Second, 250 * time.Millisecond},
		{0, 10 * time.Second, 250 * time.Millisecond},
		{0, time.Hour, 250 * time.Millisecond},
		{1, 0, 2 * rt},
		{3, 0, 6 * rt},
		{3, 400 * time.Millisecond, 300 * time.Millisecond},
		{1, time.Hour, time.Second},
		{30, math.MaxInt64, time.Second},
	} {
		if got := (Position{Ahead: tc.ahead, RoundTrip: rt, Most: LongestQueuePause}).pause(tc.age); got != tc.want {
			t.Errorf("%d ahead, grant of age %v: %v, want %v", tc.ahead, tc.age, got, tc.want)
		}
	}
	if got := (Position{Most: LongestQueuePause}).pause(0); got < time.Millisecond {
		t.Errorf("without a round trip the pause is only %v", got)
	}
	v := View{Known: true, Grant: 0, Dead: time.Hour, PollMin: time.Minute, PollMax: time.Minute, Position: &Position{RoundTrip: rt, Most: time.Second}}
	for _, u := range []float64{0, 0.99} {
		if move, wait := Next(v, 0, u); move != Look || wait != rt {
			t.Errorf("%v after %v", move, wait)
		}
	}
}

// The mean pause is the age of a young grant, but at most a quarter of a second. For a grant older
// than five seconds, it is a twentieth of the age. It is always between PollMin and PollMax.
func TestWaiterReadsLessOftenAsGrantGrowsOlder(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ age, want time.Duration }{
		{0, 25 * ms},
		{25 * ms, 25 * ms},
		{100 * ms, 100 * ms},
		{250 * ms, 250 * ms},
		{time.Second, 250 * ms},
		{5 * time.Second, 250 * ms},
		{8 * time.Second, 400 * ms},
		{10 * time.Second, 500 * ms},
		{math.MaxInt64, 500 * ms},
	} {
		if got := Pause(tc.age, 25*ms, 500*ms, 0.5); got != tc.want {
			t.Errorf("grant of age %v: mean pause %v, want %v", tc.age, got, tc.want)
		}
	}
	if got := Pause(time.Second, time.Minute, time.Hour, 0.5); got != time.Minute {
		t.Errorf("a mean of %v is below PollMin", got)
	}
	if got := Pause(time.Second, 0, 100*ms, 0.5); got != 100*ms {
		t.Errorf("a mean of %v is above PollMax", got)
	}
}

// A holder is more likely to release the key during a long pause of a waiter than during a short
// one. So if a waiter's pauses vary more in length, it notices the release later on average, even if
// it reads equally often.
func TestWaiterNoticesReleaseWithAverageDelayOfHalfPollInterval(t *testing.T) {
	const n, mean = 1000, 250 * time.Millisecond
	pause := func(u float64) float64 {
		return Pause(2*time.Second, 25*time.Millisecond, 500*time.Millisecond, u).Seconds()
	}
	var sum, squares float64
	for i := range n {
		p := pause((float64(i) + 0.5) / n)
		sum, squares = sum+p, squares+p*p
	}
	if got := sum / n; math.Abs(got-mean.Seconds()) > 0.001 {
		t.Errorf("pauses of %.3f s on average, want %v", got, mean)
	}
	if late := squares / sum / 2; late > 0.55*mean.Seconds() {
		t.Errorf("the release is noticed %.3f s late on average, with pauses of %v", late, mean)
	}
	if shortest, longest := pause(0), pause(1); longest < 2*shortest {
		t.Errorf("pauses from %.3f to %.3f s vary too little", shortest, longest)
	}
}

func TestHandOverLeaseIsHalfOfHolderLeaseClampedToLimits(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct{ lease, want time.Duration }{
		{0, 0},
		{second, second},
		{2 * second, 2 * second},
		{3 * second, 3 * second},
		{4 * second, 3 * second},
		{6 * second, 3 * second},
		{7 * second, 3500 * time.Millisecond},
		{20 * second, 10 * second},
		{time.Minute, 10 * second},
		{math.MaxInt64, 10 * second},
	} {
		if got := HandOverLease(tc.lease); got != tc.want {
			t.Errorf("lease %v: %v, want %v", tc.lease, got, tc.want)
		}
	}
}

// The holder may hand the key to a waiter while the waiter pauses. The waiter learns this only
// from its next read. By then, most of the lease must still be left.
func TestPauseOfQueuedWaiterIsAtMostQuarterOfLease(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct{ own, held, want time.Duration }{
		{20 * second, 20 * second, second},
		{20 * second, 2 * second, second / 2},
		{20 * second, second, second / 4},
		{second, 20 * second, second / 4},
		{2 * second, second, second / 4},
	} {
		if got := LongestPauseInQueue(tc.own, tc.held); got != tc.want {
			t.Errorf("own lease %v, holder's %v: %v, want %v", tc.own, tc.held, got, tc.want)
		}
	}
}

func TestHandOversToQueueAreSuspendedForAtMostSixLeases(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	for _, tc := range []struct {
		ahead, lease time.Duration
		want         bool
	}{
		{-time.Millisecond, 20 * time.Second, false},
		{0, 20 * time.Second, false},
		{time.Millisecond, 20 * time.Second, true},
		{2 * time.Minute, 20 * time.Second, true},
		{2*time.Minute + time.Millisecond, 20 * time.Second, false},
		{time.Minute, 5 * time.Second, false},
		{time.Hour, math.MaxInt64, true},
	} {
		if got := IsSuspended(now.Add(tc.ahead), now, tc.lease); got != tc.want {
			t.Errorf("%v ahead, lease %v: %v", tc.ahead, tc.lease, got)
		}
	}
	if IsSuspended(time.Time{}, now, 20*time.Second) {
		t.Error("suspended, although no time is set")
	}
	if until := SuspendedUntil(now, 20*time.Second); !until.Equal(now.Add(2*time.Minute)) || !IsSuspended(until, now, 20*time.Second) {
		t.Errorf("suspended until %v", until)
	}
}

func TestAcquireCallAddsQueueEntriesAtLimitedRate(t *testing.T) {
	var j Joins
	take := func(from, to time.Duration) (n int) {
		for now := from; now < to; now += 100 * time.Millisecond {
			if j.Take(now) {
				n++
			}
		}
		return n
	}
	const began = time.Hour
	for _, tc := range []struct {
		from, to time.Duration
		want     int
	}{
		{0, 2 * time.Second, 16},
		{2 * time.Second, 4 * time.Second, 0},
		{4 * time.Second, 44 * time.Second, 10},
		{44 * time.Second, 46 * time.Second, 1},
		// After an hour with few joins, the call may again send 16 joins without a pause, as at the
		// start, but not more.
		{time.Hour, time.Hour + 2*time.Second, 16},
	} {
		if n := take(began+tc.from, began+tc.to); n != tc.want {
			t.Errorf("from %v to %v: %d, want %d", tc.from, tc.to, n, tc.want)
		}
	}
}

func TestAcquireAnyJoinsMoreQueuesAsItWaits(t *testing.T) {
	for waited, want := range map[time.Duration]int{
		0: 2, time.Second - 1: 2, time.Second: 3, 2*time.Second - 1: 3, 2 * time.Second: 4, time.Hour: 2 + 12, math.MaxInt64: 2 + 34,
	} {
		if got := Queues(waited); got != want {
			t.Errorf("after %v: %d, want %d", waited, got, want)
		}
	}
}
