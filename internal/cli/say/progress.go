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

// Observe is Observer.Observe with messages about the expected time and cost. The messages
// name what; none are written if it is empty.
func (m *Messages) Observe(ctx context.Context, o holders.Observer, records []leasehold.Record, what string) []holders.Observation {
	out := make([]holders.Observation, len(records))
	_ = m.watch(ctx, o, records, what, func(i int, found holders.Observation) error {
		out[i] = found
		return nil
	})
	return out
}

// watch is Observer.Watch with messages. It calls settled for each record, one at a time,
// until settled fails.
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
		if p != nil && failed == nil && toGo > 0 { // otherwise the line below would follow the last record
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

// Check observes the records and calls settled with each as soon as its holder's state is
// known, or once it is clear that it stays unknown. It omits released records unless all is
// true. It reports a record that was damaged meanwhile on stderr, and returns its error at
// the end.
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
		case errors.As(found.Err, new(*leasehold.RecordError)):
			m.Fail(found.Err)
			bad = found.Err
			return nil
		case found.Gone, found.Record.Released && !all:
			return nil
		case found.Err != nil:
			ended = found.Err // the other records have the same error
		}
		return settled(found)
	})
	return cmp.Or(err, ended, bad)
}

// progress is the progress of an observation.
type progress struct {
	plan  holders.Plan
	what  string
	began time.Time
	known int // holders known since the plan was made
}

// beginProgress announces the cost of the observation.
func (m *Messages) beginProgress(p holders.Plan, what string) *progress {
	now := &progress{plan: p, what: what, began: time.Now()}
	// One holder costs too little for a line if another line counts down.
	if what != "" && (!m.Rewrites() || p.Holders > 1) {
		m.Text("observing %s for up to %s%s", what, wording.Age(durations.Sum(p.Longest, time.Second-1)), costOf(p))
	}
	now.show(m)
	return now
}

// costOf describes the cost of the reads. It includes units only if they are paid for.
func costOf(p holders.Plan) string {
	if p.Requests == 0 { // the records already read suffice, or there is no time for more
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
