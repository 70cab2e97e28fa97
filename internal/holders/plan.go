package holders

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
)

// Plan describes the rest of an observation. Holders is the number of undecided holders. The other
// fields are the time and the cost if no holder is live. If some holders are live, the observation
// takes less.
type Plan struct {
	Holders  int
	Longest  time.Duration
	Requests int
	Units    float64 // least number of read units; zero if read units cost nothing
}

// plan returns the Plan for the rest of the observation. It assumes that no holder is live.
func (w *watch) plan() Plan {
	began := time.Since(w.began)
	p := Plan{Holders: len(w.open)}
	open := make([]*subject, len(w.open))
	for i, s := range w.open {
		left := *s
		open[i] = &left
	}
	for len(open) > 0 {
		at, due := w.next(open)
		if w.Limit > 0 && at > w.Limit {
			p.Longest = durations.Less(w.Limit, began)
			break
		}
		requests, units := w.Reader.cost(w.keys(due))
		p.Requests, p.Units = p.Requests+requests, p.Units+units
		p.Longest = max(p.Longest, durations.Less(at, began))
		for _, s := range due {
			s.due = min(durations.Sum(at, s.every), max(s.dead, at))
		}
		open = slices.DeleteFunc(open, func(s *subject) bool { return s.dead <= at })
	}
	if w.FreeReads {
		p.Units = 0
	}
	return p
}
