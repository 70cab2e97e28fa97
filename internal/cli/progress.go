package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
)

// observeWithProgress is observer.observe with messages of how long it may take, and
// at which cost.
func (a *app) observeWithProgress(ctx context.Context, o observer, records []leasehold.Record, what string) []observation {
	out := make([]observation, len(records))
	_ = a.watchWithProgress(ctx, o, records, what, func(i int, found observation) error {
		out[i] = found
		return nil
	})
	return out
}

// watchWithProgress is observer.watch with messages. It calls settled from this
// goroutine, for every record, or until settled fails.
func (a *app) watchWithProgress(ctx context.Context, o observer, records []leasehold.Record, what string, settled func(i int, found observation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plans := make(chan plan, 1)
	type result struct {
		i     int
		found observation
	}
	results := make(chan result)
	go func() {
		defer close(results)
		o.watch(ctx, records, func(p plan) { plans <- p }, func(i int, found observation) { results <- result{i, found} })
	}()
	var p *progress
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var failed error
	for {
		select {
		case r, more := <-results:
			if !more {
				a.say.clear()
				return failed
			}
			if p != nil && r.found.liveness != "" {
				p.known++
			}
			if failed != nil {
				continue
			}
			a.say.clear()
			if failed = settled(r.i, r.found); failed != nil {
				cancel()
			}
		case planned := <-plans:
			p = a.beginProgress(planned, what, o.reader.paid)
		case <-tick.C:
			if p != nil && failed == nil {
				p.show(a.say)
			}
		}
	}
}

// progress is how far an observation is.
type progress struct {
	plan  plan
	what  string
	began time.Time
	known int // holders, since the plan was made
}

// beginProgress says what the observation will cost.
func (a *app) beginProgress(p plan, what string, paid bool) *progress {
	now := &progress{plan: p, what: what, began: time.Now()}
	// One holder costs nothing worth a line, where another line counts down.
	if !a.say.rewrites() || p.holders > 1 {
		a.say.text("observing %s for up to %s%s", what, age(p.longest+time.Second-1), p.cost(paid))
	}
	now.show(a.say)
	return now
}

// cost says what the readings cost. Units are said where they are paid for.
func (p plan) cost(paid bool) string {
	if p.requests == 0 { // what has been read is enough, or there is no time for more
		return ""
	}
	text := ": at most " + countOf(p.requests, "request", "requests")
	if paid {
		text += fmt.Sprintf(", about %.0f read units", p.units)
	}
	return text
}

// show rewrites the line on a terminal.
func (p *progress) show(say *messages) {
	if !say.rewrites() {
		return
	}
	text := "observing " + p.what
	if p.plan.holders > 1 {
		text += fmt.Sprintf(", %d to go", p.plan.holders-p.known)
	}
	say.rewrite(text + ", at most " + age(p.plan.longest-time.Since(p.began)+time.Second-1) + " left")
}
