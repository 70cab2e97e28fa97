package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

// newObserver returns an observer of the holders in a table.
func newObserver(s *store.Store, locks *leasehold.Client) (holders.Observer, error) {
	by, err := holders.New(s.DB, s.Table, s.Layout, locks)
	by.Unpaid = s.File != ""
	return by, err
}

// observeWithProgress is Observer.Observe with messages of how long it may take, and
// at which cost.
func (a *app) observeWithProgress(ctx context.Context, o holders.Observer, records []leasehold.Record, what string) []holders.Observation {
	out := make([]holders.Observation, len(records))
	_ = a.watchWithProgress(ctx, o, records, what, func(i int, found holders.Observation) error {
		out[i] = found
		return nil
	})
	return out
}

// watchWithProgress is Observer.Watch with messages. It calls settled from this
// goroutine, for every record, or until settled fails.
func (a *app) watchWithProgress(ctx context.Context, o holders.Observer, records []leasehold.Record, what string, settled func(i int, found holders.Observation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plans := make(chan holders.Plan, 1)
	type result struct {
		i     int
		found holders.Observation
	}
	results := make(chan result)
	go func() {
		defer close(results)
		o.Watch(ctx, records, func(p holders.Plan) { plans <- p }, func(i int, found holders.Observation) { results <- result{i, found} })
	}()
	var p *progress
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var failed error
	for {
		select {
		case r, more := <-results:
			if !more {
				a.say.Clear()
				return failed
			}
			if p != nil && r.found.State != "" {
				p.known++
			}
			if failed != nil {
				continue
			}
			a.say.Clear()
			if failed = settled(r.i, r.found); failed != nil {
				cancel()
			}
		case planned := <-plans:
			p = a.beginProgress(planned, what)
		case <-tick.C:
			if p != nil && failed == nil {
				p.show(a.say)
			}
		}
	}
}

// progress is how far an observation is.
type progress struct {
	plan  holders.Plan
	what  string
	began time.Time
	known int // holders, since the plan was made
}

// beginProgress says what the observation will cost.
func (a *app) beginProgress(p holders.Plan, what string) *progress {
	now := &progress{plan: p, what: what, began: time.Now()}
	// One holder costs nothing worth a line, where another line counts down.
	if !a.say.Rewrites() || p.Holders > 1 {
		a.say.Text("observing %s for up to %s%s", what, wording.Age(p.Longest+time.Second-1), costOf(p))
	}
	now.show(a.say)
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
func (p *progress) show(say *say.Messages) {
	if !say.Rewrites() {
		return
	}
	text := "observing " + p.what
	if p.plan.Holders > 1 {
		text += fmt.Sprintf(", %d to go", p.plan.Holders-p.known)
	}
	say.Rewrite(text + ", at most " + wording.Age(p.plan.Longest-time.Since(p.began)+time.Second-1) + " left")
}
