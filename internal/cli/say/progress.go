package say

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
)

// Observe is Observer.Observe with messages of how long it may take, and at which cost. They
// name what is observed, and are left out if that is empty.
func (m *Messages) Observe(ctx context.Context, o holders.Observer, records []leasehold.Record, what string) []holders.Observation {
	out := make([]holders.Observation, len(records))
	_ = m.watch(ctx, o, records, what, func(i int, found holders.Observation) error {
		out[i] = found
		return nil
	})
	return out
}

// watch is Observer.Watch with messages. It calls settled for every record, one at a time,
// or until settled fails.
func (m *Messages) watch(ctx context.Context, o holders.Observer, records []leasehold.Record, what string, settled func(i int, found holders.Observation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var p *progress
	var failed error
	toGo := len(records)
	end := seconds.Each(func() {
		mu.Lock()
		defer mu.Unlock()
		if p != nil && failed == nil && toGo > 0 { // else below the last one nothing is awaited
			p.show(m)
		}
	})
	o.Watch(ctx, records, func(planned holders.Plan) {
		mu.Lock()
		defer mu.Unlock()
		p = m.beginProgress(planned, what)
	}, func(i int, found holders.Observation) {
		mu.Lock()
		defer mu.Unlock()
		toGo--
		if p != nil && found.State != "" {
			p.known++
		}
		if failed != nil {
			return
		}
		m.Clear()
		if failed = settled(i, found); failed != nil {
			cancel()
		}
	})
	end()
	m.Clear()
	return failed
}

// Check observes the records and calls settled with each as soon as its holder is
// known, or once it is clear that it will not be. Records that are no longer held are
// left out, unless all are wanted. A record that has been damaged meanwhile is
// reported on stderr, and its error returned in the end.
func (m *Messages) Check(ctx context.Context, by holders.Observer, all bool, records []leasehold.Record, settled func(holders.Observation) error) error {
	held := 0
	for _, r := range records {
		if !r.Released {
			held++
		}
	}
	var bad, ended error
	err := m.watch(ctx, by, records, wording.Count(held, "holder", "holders"), func(_ int, found holders.Observation) error {
		switch {
		case errors.Is(found.Err, leasehold.ErrRecord):
			m.Fail(found.Err)
			bad = found.Err
			return nil
		case found.Gone, found.Record.Released && !all:
			return nil
		case found.Err != nil:
			ended = found.Err // the others have it too
		}
		return settled(found)
	})
	return cmp.Or(err, ended, bad)
}

// progress is how far an observation is.
type progress struct {
	plan  holders.Plan
	what  string
	began time.Time
	known int // holders, since the plan was made
}

// beginProgress says what the observation will cost.
func (m *Messages) beginProgress(p holders.Plan, what string) *progress {
	now := &progress{plan: p, what: what, began: time.Now()}
	// One holder costs nothing worth a line, where another line counts down.
	if what != "" && (!m.Rewrites() || p.Holders > 1) {
		m.Text("observing %s for up to %s%s", what, wording.Age(durations.Sum(p.Longest, time.Second-1)), costOf(p))
	}
	now.show(m)
	return now
}

// costOf says what the readings cost. Units are said where they are paid for.
func costOf(p holders.Plan) string {
	if p.Requests == 0 { // what has been read is enough, or there is no time for more
		return ""
	}
	text := ": at most " + wording.Count(p.Requests, "request", "requests")
	if p.Units > 0 {
		text += fmt.Sprintf(", about %.0f read units", p.Units)
	}
	return text
}

// show rewrites the line on a terminal.
func (p *progress) show(m *Messages) {
	if !m.Rewrites() {
		return
	}
	text := "observing " + p.what
	if p.plan.Holders > 1 {
		text += fmt.Sprintf(", %d to go", p.plan.Holders-p.known)
	}
	m.Rewrite(text + ", at most " + wording.Age(durations.Sum(durations.Less(p.plan.Longest, time.Since(p.began)), time.Second-1)) + " left")
}
