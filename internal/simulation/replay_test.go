package simulation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// A failing seed is useful only if it fails again when it is run again. So all runs of a
// seed must have the same history, in whatever order the scheduler runs goroutines. make
// check replays more seeds.
func TestSameSeedGivesSameHistory(t *testing.T) {
	for _, w := range worlds {
		if w.test == "TestSimulationOfLoad" { // skipped: this simulation records no history
			continue
		}
		t.Run(w.test, func(t *testing.T) {
			forSeeds(t, 1, func(t *testing.T, seed uint64, _ world) {
				var first []string
				for i := range 4 {
					var again []string
					w.run(t, seed, world{yields: i > 0, told: func(lines []string) { again = lines }})
					if first == nil {
						first = again
					}
					if problem := firstDifference(first, again); problem != "" {
						t.Fatalf("seed %d: %s", seed, problem)
					}
				}
			})
		})
	}
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			before := a[max(0, i-5):min(i, len(a))]
			return fmt.Sprintf("line %d of %d and %d; after\n\t%s\nfirst\n\t%s\nthen\n\t%s", i, len(a), len(b), strings.Join(before, "\n\t"),
				strings.Join(a[min(i, len(a)):min(i+4, len(a))], "\n\t"), strings.Join(b[min(i, len(b)):min(i+4, len(b))], "\n\t"))
		}
	}
	if len(a) == 0 {
		return "nothing happened"
	}
	return ""
}

// history contains the events of a run, in their order.
type history struct {
	began  time.Time
	events []event
}

type event struct {
	at   time.Duration
	what string
}

func (h *history) enter(format string, args ...any) {
	h.events = append(h.events, event{time.Since(h.began), fmt.Sprintf(format, args...)})
}

// lines returns the history as text. Names take the place of random ids, and events at
// the same instant are sorted by their text. So the result is the same for every run of
// a seed.
func (h *history) lines(names ids) []string {
	events := slices.Clone(h.events)
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return strings.Compare(lab.Random.ReplaceAllString(a.what, ""), lab.Random.ReplaceAllString(b.what, ""))
	})
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("%v %s", e.at, names.in(e.what))
	}
	return lines
}

// ids contains a name for each random string. The names are numbered in the
// order in which the strings first appear.
type ids map[string]string

// shortOwner matches the owner of a simulated client in the short form that errors use:
// with four characters of the client id.
var shortOwner = regexp.MustCompile(`\btest/[a-z2-7]{4}\b`)

func (n ids) in(text string) string {
	text = shortOwner.ReplaceAllString(text, "test/#")
	return lab.Random.ReplaceAllStringFunc(text, func(id string) string {
		if n[id] == "" {
			n[id] = fmt.Sprint("#", len(n)+1)
		}
		return n[id]
	})
}
