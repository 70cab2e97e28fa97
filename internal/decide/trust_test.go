package decide

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func at(mono, boot time.Duration) Instant { return Instant{Mono: mono, Boot: boot} }

func TestTrustIsLeaseMinusMarginCountedFromSendTime(t *testing.T) {
	until := TrustedUntil(at(100*time.Second, 500*time.Second), 20*time.Second, 2*time.Second)
	if want := at(118*time.Second, 518*time.Second); until != want {
		t.Fatalf("until %v, want %v", until, want)
	}
}

func TestTrustEndsAsSoonAsEitherClockReachesEnd(t *testing.T) {
	until := at(118*time.Second, 518*time.Second)
	for _, tc := range []struct {
		name string
		now  Instant
		past bool
	}{
		{"neither has come", at(117*time.Second, 517*time.Second), false},
		{"monotonic has come", at(118*time.Second, 517*time.Second), true},
		{"boot clock has come: suspended", at(100*time.Second, 518*time.Second), true},
		{"both have come", at(130*time.Second, 600*time.Second), true},
	} {
		if got := tc.now.Past(until); got != tc.past {
			t.Errorf("%s: past %v, want %v", tc.name, got, tc.past)
		}
	}
}

func TestLeaseOfMaximumDurationDoesNotOverflow(t *testing.T) {
	now := at(time.Hour, 1000*time.Hour)
	until := TrustedUntil(now, 1<<63-1, time.Second)
	if now.Past(until) {
		t.Fatalf("a lease of 292 years ended at once: until %v", until)
	}
}

func TestTrustEndsBeforeObserversSeeLeaseEnd(t *testing.T) {
	// An observer cannot see a version before the holder has sent it. After it has seen
	// the version, it waits for a whole lease. The rates of the two clocks differ by less
	// than margin/lease, so the holder's trust ends first.
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

func TestEarlierOfTwoInstantsHasMinimumOfEachClock(t *testing.T) {
	if got, want := at(1, 4).Earlier(at(2, 3)), at(1, 3); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestConditionIncludesLastReadVersionAndNewestAttempts(t *testing.T) {
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
