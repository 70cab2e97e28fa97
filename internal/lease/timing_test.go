package lease

import (
	"testing"
	"time"
)

func TestShortestLeaseIsTrustedLongEnoughForEverySkew(t *testing.T) {
	for skew, want := range map[time.Duration]time.Duration{
		0: time.Second, 200 * time.Millisecond: 1200 * time.Millisecond, 2 * time.Second: 3 * time.Second,
		17 * time.Second: 21 * time.Second, 20 * time.Second: 24500 * time.Millisecond, 30 * time.Second: 36 * time.Second,
	} {
		if got := Shortest(skew); got != want {
			t.Errorf("%v: %v, not %v", skew, got, want)
		}
	}
	for skew := time.Duration(0); skew < time.Minute; skew += 70 * time.Millisecond {
		if trust := Usual(Shortest(skew), skew).Trust(); trust < ShortestTrust {
			t.Errorf("%v: trusted for %v", skew, trust)
		}
	}
}

func TestUsualTimingRenewsThreeTimesWithinTrust(t *testing.T) {
	for skew, want := range map[time.Duration]Timing{
		0:                {Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 5 * time.Second},
		12 * time.Second: {Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 2 * time.Second, Skew: 12 * time.Second},
	} {
		if got := Usual(20*time.Second, skew); got != want {
			t.Errorf("%v: %+v, not %+v", skew, got, want)
		}
	}
}

func TestScaledTimingRenewsThreeTimesWithinTrust(t *testing.T) {
	usual := Usual(20*time.Second, 12*time.Second)
	for lease, want := range map[time.Duration]Timing{
		40 * time.Second: {Lease: 40 * time.Second, Margin: 4 * time.Second, Every: 4 * time.Second, Skew: 12 * time.Second},
		15 * time.Second: {Lease: 15 * time.Second, Margin: 1500 * time.Millisecond, Every: 500 * time.Millisecond, Skew: 12 * time.Second},
	} {
		if got := usual.Scaled(lease); got != want {
			t.Errorf("%v: %+v, not %+v", lease, got, want)
		}
	}
}
