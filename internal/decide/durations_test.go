package decide

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

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

func TestDurationScaleSaturatesInsteadOfOverflowing(t *testing.T) {
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

// FuzzDurations checks that sums and products of durations equal the exact results,
// limited to the range of a Duration. It also checks that decisions with very long
// durations are still right.
func FuzzDurations(f *testing.F) {
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
			t.Errorf("after two leases of %d a holder is dead at %d", lease, dead)
		}
		expires, wall := time.Unix(a/1e9, 0), time.Unix(0, c)
		over := !wall.Before(expires.Add(durations.Sum(lease, long)))
		if dead := DeadByClock(expires, lease, long, wall, now); dead <= now && !over && now < longest || dead > now && over {
			t.Errorf("dead at %d, and it is %d; expired by every clock: %t", dead, now, over)
		}
		view := View{Known: true, Grant: time.Duration(c), Dead: DeadByVersion(now, lease), PollMin: 1, PollMax: lease}
		if move, wait := Next(view, now, u); wait < 0 || move == TakeOver && durations.Sum(now, wait) < view.Dead {
			t.Errorf("%v after %v, though the holder is dead at %v", move, wait, view.Dead)
		}
		for what, pause := range map[string]time.Duration{
			"pause": Pause(time.Duration(c), 1, lease, u), "longest pause": Pause(long, lease, lease, 1), "back off": Backoff(int(long%30), lease, long, u),
			"first renewal": FirstRenewal(lease, long, u), "next renewal": NextRenewal(lease, time.Duration(c), long, c%2 == 0, u),
			"retry": RenewalRetry(int(long%30), lease, long, u), "deadline": RenewalDeadline(long),
		} {
			if pause < 0 {
				t.Errorf("%s of %v", what, pause)
			}
		}
	})
}
