package indoubt

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// filled returns Attempts that contain one attempt for each of n keys.
func filled(n int) *Attempts[string] {
	a := &Attempts[string]{}
	for i := range n {
		a.Add(fmt.Sprint("key/", i), []string{fmt.Sprint("version/", i)}, 0, 0)
	}
	return a
}

// fastest returns the duration of the fastest of 20 runs. Other work on the machine makes
// some runs slower.
func fastest(run func()) time.Duration {
	best := time.Hour
	for range 20 {
		began := time.Now()
		run()
		best = min(best, time.Since(began))
	}
	return best
}

func TestLookupOfUnansweredWriteTakesConstantTime(t *testing.T) {
	ask := func(a *Attempts[string]) func() {
		return func() {
			for range 100 {
				if a.Has("key/50", "another", 0) {
					t.Fatal("Has found an attempt that was never added")
				}
			}
		}
	}
	// If each call of Has had to search all attempts, "many" would be a thousand times "few".
	if few, many := fastest(ask(filled(100))), fastest(ask(filled(most))); many > 50*few {
		t.Errorf("100 calls of Has took %v with 100 attempts, and %v with %d", few, many, most)
	}
}

func TestOldestUnansweredWritesAreForgottenIfThereAreTooMany(t *testing.T) {
	a := filled(3 * most)
	if n := a.byAge.Len(); n != most || len(a.byVersion) != n {
		t.Errorf("%d attempts of %d keys are kept, want %d", n, len(a.byVersion), most)
	}
	for i, want := range map[int]bool{0: false, 2*most - 1: false, 2 * most: true, 3*most - 1: true} {
		if got := a.Has(fmt.Sprint("key/", i), fmt.Sprint("version/", i), 0); got != want {
			t.Errorf("attempt %d is remembered: %t, want %t", i, got, want)
		}
	}
}

func TestUnansweredWriteIsRememberedForFifteenMinutes(t *testing.T) {
	var a Attempts[string]
	a.Add("a", []string{"old"}, 0, 0)
	a.Add("a", []string{"young"}, 10*time.Minute, 0)
	if !a.Has("a", "old", 15*time.Minute) {
		t.Error("the old attempt is forgotten too early")
	}
	late := 15*time.Minute + time.Second
	if a.Has("a", "old", late) || !a.Has("a", "young", late) || !a.Any("a", late) {
		t.Error("the old attempt is remembered, or the young one forgotten")
	}
	if n := a.byAge.Len(); n != 1 {
		t.Errorf("%d attempts are kept, want the young one", n)
	}
	if a.Any("a", 26*time.Minute) || len(a.byVersion) > 0 {
		t.Error("the young attempt is forgotten too late")
	}
}

func TestUnansweredWriteIsRememberedLongerIfAddedAgain(t *testing.T) {
	var a Attempts[string]
	a.Add("a", []string{"first", "second"}, 0, 0)
	a.Add("a", []string{"first"}, 10*time.Minute, 0)
	if got := a.Of("a", 10*time.Minute); !slices.Equal(got, []string{"second", "first"}) {
		t.Errorf("the attempts are %v, oldest first", got)
	}
	if got := a.Of("a", 20*time.Minute); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the remembered attempts are %v", got)
	}
}

func TestSettleForgetsOneUnansweredWriteAndKeepsOthers(t *testing.T) {
	var a Attempts[string]
	a.Add("a", []string{"x", "y"}, 0, 0)
	a.Add("b", []string{"x"}, 0, 0)
	a.Settle("a", "x")
	a.Settle("c", "x")
	if a.Has("a", "x", 0) || !a.Has("a", "y", 0) || !a.Has("b", "x", 0) || a.Any("c", 0) {
		t.Errorf("the attempts of a are %v, of b %v", a.Of("a", 0), a.Of("b", 0))
	}
}
