package simulation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// history is a record of all events of a run.
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

// lines returns the history as text, with names instead of random ids, so that it is the
// same for every run of a seed. Events at the same instant are sorted by their text.
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

// ids maps random strings to names, in the order in which the strings first appear.
type ids map[string]string

// shortOwner matches an owner of the simulation as errors show it, with four characters of
// its id.
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
