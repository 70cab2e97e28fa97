package leasehold_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

// fastest returns the shortest of several runs: what else the machine does only
// makes one longer.
func fastest(run func()) time.Duration {
	best := time.Hour
	for range 20 {
		began := time.Now()
		run()
		best = min(best, time.Since(began))
	}
	return best
}

// giveUp has a client give up one attempt for each of n keys.
func giveUp(c *leasehold.Client, n int) {
	for i := range n {
		leasehold.GiveUp(c, leasehold.Key{Partition: fmt.Sprint("key/", i)}, fmt.Sprint("version/", i))
	}
}

func TestAQuestionAboutAnAttemptGivenUpDoesNotCostMoreTheMoreThereAre(t *testing.T) {
	w := newWorld(t)
	few, _ := w.client(config())
	many, _ := w.client(config())
	giveUp(few, 100)
	giveUp(many, 100_000)
	ask := func(c *leasehold.Client) func() {
		return func() {
			for range 100 {
				if leasehold.GaveUp(c, leasehold.Key{Partition: "key/50"}, "another") {
					t.Fatal("an attempt of nobody's was given up")
				}
			}
		}
	}
	// Searched from end to end, the one is about a thousand times the other.
	if one, other := fastest(ask(few)), fastest(ask(many)); other > 50*one {
		t.Errorf("100 questions took %v beside 100 attempts, and %v beside 100,000", one, other)
	}
}

func TestOfTheAttemptsGivenUpTheNewestAreRemembered(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(config())
	giveUp(c, 300_000)
	if n := leasehold.AllGivenUp(c); n != 100_000 {
		t.Errorf("%d attempts are remembered, want 100,000", n)
	}
	for i, want := range map[int]bool{0: false, 199_999: false, 200_000: true, 299_999: true} {
		if got := leasehold.GaveUp(c, leasehold.Key{Partition: fmt.Sprint("key/", i)}, fmt.Sprint("version/", i)); got != want {
			t.Errorf("attempt %d is remembered: %t, want %t", i, got, want)
		}
	}
}

func TestAnAttemptIsRememberedForAQuarterOfAnHour(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		key := leasehold.Key{Partition: "a"}
		leasehold.GiveUp(c, key, "old")
		elapse(10 * time.Minute)
		leasehold.GiveUp(c, key, "young")
		elapse(5*time.Minute + time.Second)
		if leasehold.GaveUp(c, key, "old") || !leasehold.GaveUp(c, key, "young") {
			t.Error("the old attempt is remembered, or the young one forgotten")
		}
		if n := leasehold.AllGivenUp(c); n != 1 {
			t.Errorf("%d attempts are kept, want the young one", n)
		}
	})
}
