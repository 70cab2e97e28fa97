package lease

import (
	"fmt"
	"testing"
	"time"
)

func TestShortestLeaseIsTrustedLongEnoughForEveryMaxSkew(t *testing.T) {
	for skew, shortest := range map[time.Duration]time.Duration{
		0: time.Second, 200 * time.Millisecond: 1200 * time.Millisecond, 2 * time.Second: 3 * time.Second,
		17 * time.Second: 21 * time.Second, 20 * time.Second: 24500 * time.Millisecond, 30 * time.Second: 36 * time.Second,
	} {
		want(t, fmt.Sprint("shortest lease for a skew of ", skew), Shortest(skew), shortest)
	}
	for skew := time.Duration(0); skew < time.Minute; skew += 70 * time.Millisecond {
		if trust := Usual(Shortest(skew), skew).Trust(); trust < ShortestTrust {
			t.Errorf("%v: trusted for %v", skew, trust)
		}
	}
}

func TestUsualTimingRenewsThreeTimesWithinTrust(t *testing.T) {
	for skew, timing := range map[time.Duration]Timing{
		0:                {Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 5 * time.Second},
		12 * time.Second: {Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 2 * time.Second, Skew: 12 * time.Second},
	} {
		want(t, fmt.Sprint("timing for a skew of ", skew), Usual(20*time.Second, skew), timing)
	}
}

func TestScaledTimingFitsLengthOfLease(t *testing.T) {
	usual := Usual(20*time.Second, 12*time.Second)
	for lease, timing := range map[time.Duration]Timing{
		40 * time.Second: {Lease: 40 * time.Second, Margin: 4 * time.Second, Every: 4 * time.Second, Skew: 12 * time.Second},
		15 * time.Second: {Lease: 15 * time.Second, Margin: 1500 * time.Millisecond, Every: 500 * time.Millisecond, Skew: 12 * time.Second},
	} {
		want(t, fmt.Sprint("timing of a lease of ", lease), usual.Scaled(lease), timing)
	}
}
