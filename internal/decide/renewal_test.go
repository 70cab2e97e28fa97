package decide

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRenewalAttemptTimesOutAfterQuarterOfRemainingTrust(t *testing.T) {
	for _, tc := range []struct{ left, want time.Duration }{
		{18 * time.Second, 2 * time.Second},
		{4 * time.Second, time.Second},
		{600 * time.Millisecond, 250 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond}, // an attempt never takes longer than the trust that is left
	} {
		if got := RenewalDeadline(tc.left); got != tc.want {
			t.Errorf("with %v left: %v, want %v", tc.left, got, tc.want)
		}
	}
}

func TestNextRenewalIsDueOnePeriodAfterLastWasSent(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct {
		name      string
		took      time.Duration
		left      time.Duration
		displaced bool
		u         float64
		want      time.Duration
	}{
		{"after a period", 0, 18 * second, false, 0.5, 5 * second},
		{"which counts from the sending", 2 * second, 16 * second, false, 0.5, 3 * second},
		{"by the trust left, if that is little", 0, 3 * second, false, 0.5, second},
		{"never before now", 0, -second, false, 0.5, 0},
		{"anywhere in the period, if it was not in its place", 0, 18 * second, true, 0.25, 1250 * time.Millisecond},
		{"or if its reply took half of it", 3 * second, 15 * second, false, 0.5, 2500 * time.Millisecond},
	} {
		if got := NextRenewal(5*second, tc.took, tc.left, tc.displaced, tc.u); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestFirstRenewalIsSentInSecondHalfOfPeriod(t *testing.T) {
	for _, tc := range []struct {
		left     time.Duration
		from, to time.Duration
	}{
		{18 * time.Second, 2500 * time.Millisecond, 5 * time.Second},
		{300 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond},
		{-time.Second, 0, 0},
	} {
		if from, to := FirstRenewal(5*time.Second, tc.left, 0), FirstRenewal(5*time.Second, tc.left, 1); from != tc.from || to != tc.to {
			t.Errorf("with %v left: %v to %v, want %v to %v", tc.left, from, to, tc.from, tc.to)
		}
	}
}

func TestRenewalIsRetriedWithinHalfOfRemainingTrust(t *testing.T) {
	for _, tc := range []struct {
		n          int
		left, want time.Duration
	}{
		{0, 18 * time.Second, 50 * time.Millisecond},
		{1, 18 * time.Second, 100 * time.Millisecond},
		{9, 18 * time.Second, 1250 * time.Millisecond}, // the longest pause is a quarter of the renewal period, which is 5 s
		{9, time.Second, 500 * time.Millisecond},
		{9, 10 * time.Millisecond, 50 * time.Millisecond}, // the pause is the minimum, because half of 10 ms would be almost no pause
		{9, -time.Second, 1250 * time.Millisecond},        // trust has ended, but during an outage the client may keep the lock and retry
	} {
		if got := RenewalRetry(tc.n, 5*time.Second, tc.left, 1); got != tc.want {
			t.Errorf("attempt %d with %v left: up to %v, want %v", tc.n, tc.left, got, tc.want)
		}
	}
}

func TestRenewalRateFallsWhenThrottledAndRecovers(t *testing.T) {
	var d Demand
	for range 1000 {
		d = d.Add(5*time.Second, 18*time.Second)
	}
	const ms, s = time.Millisecond, time.Second
	p := Pace{}
	for i, step := range []struct {
		what      string
		throttled bool
		sent, now time.Duration
		want      float64
	}{
		{"nothing is paced that is not throttled", false, 0, 0, 0},
		{"the first time, from what is usual", true, 0, 0, 160},
		{"once for the replies of a short time", true, 100 * ms, 300 * ms, 160},
		{"then again", true, 250 * ms, 300 * ms, 128},
		{"it grows with time", false, 800 * ms, 800 * ms, 133},
		{"not by what came before a lull", false, 60 * s, 60 * s, 143},
		{"never below what keeps all trusted", true, 61 * s, 61 * s, 114.4},
		{"", true, 62 * s, 62 * s, 91.52},
		{"", true, 63 * s, 63 * s, 1000. / 18 * 1.5},
		{"", true, 64 * s, 64 * s, 1000. / 18 * 1.5},
	} {
		if step.throttled {
			p = p.Throttled(d, step.sent, step.now)
		} else {
			p = p.Succeeded(d, step.now)
		}
		if diff := p.PerSecond - step.want; diff > 1e-6 || diff < -1e-6 {
			t.Fatalf("step %d, %s: %v a second, want %v", i, step.what, p.PerSecond, step.want)
		}
	}
	for now := 65 * s; p != (Pace{}); now += s {
		if p = p.Succeeded(d, now); now > 100*s {
			t.Fatalf("not over after 35 s: %v a second", p.PerSecond)
		}
	}
}

func TestRenewalRateStaysHighEnoughToKeepTrust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Demand
		least := 0.0
		for range rapid.IntRange(1, 100).Draw(t, "leases") {
			trust := time.Duration(rapid.Int64Range(int64(500*time.Millisecond), int64(time.Hour)).Draw(t, "trust"))
			d = d.Add(trust/3, trust)
			least += 1 / trust.Seconds()
		}
		var p Pace
		now := time.Duration(0)
		for _, throttled := range rapid.SliceOf(rapid.Bool()).Draw(t, "replies") {
			now += time.Second
			if throttled {
				p = p.Throttled(d, now, now)
			} else {
				p = p.Succeeded(d, now)
			}
			if p != (Pace{}) && p.PerSecond < least {
				t.Fatalf("%v a second, %v keep all trusted", p.PerSecond, least)
			}
		}
	})
}

func TestFirstRenewalAfterHandOverIsSentEarly(t *testing.T) {
	for _, tc := range []struct{ lease, left, want time.Duration }{
		{10 * time.Second, 9 * time.Second, time.Second},
		{3 * time.Second, 2 * time.Second, 300 * time.Millisecond},
		// The clocks of the two processes differ in rate. Therefore the new holder trusts the
		// lease for this short time only.
		{10 * time.Second, 1200 * time.Millisecond, 400 * time.Millisecond},
		{time.Second, 0, 1},
		{time.Second, -time.Second, 1},
	} {
		if got := FirstRenewalOfHandOver(tc.lease, tc.left); got != tc.want {
			t.Errorf("of %v, %v left: %v, want %v", tc.lease, tc.left, got, tc.want)
		}
	}
}
