package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// repeatAfter is between two lines that say the same.
const repeatAfter = time.Minute

// stepWait says who is waited for while a leader may resign, as other waits do: on a
// terminal it rewrites one line every second, elsewhere it writes one a minute.
type stepWait struct {
	c      *command
	t      *store.Table
	leader leasehold.Record // as it was when it was asked
	began  time.Time
	last   time.Time // when a line was written
	advice string    // empty: it may not have heard the request yet
}

// waitFor says who leads, and is waited for, until end is called. A record that does not
// read has no line: whoever asks the leader meets that error too.
func (c *command) waitFor(ctx context.Context, t *store.Table, key string) (end func()) {
	r, err := t.Locks.Get(ctx, key)
	if err != nil || r.Released {
		return func() {}
	}
	w := &stepWait{c: c, t: t, leader: r, began: c.Now(), last: c.Now()}
	ctx, cancel := context.WithCancel(ctx)
	stop := seconds.Each(func() { w.report(ctx, c.Now()) })
	return func() {
		cancel()
		stop()
		c.Say.Clear()
	}
}

// report writes the lines that are due.
func (w *stepWait) report(ctx context.Context, now time.Time) {
	news := w.advice == "" && w.ignores(ctx, now)
	if news {
		w.advice = fmt.Sprintf("it renews and does not resign: to take its term at once, leasehold break %s --token %d",
			wording.ShellKey(w.leader.Key), w.leader.Token)
	}
	line := w.line(now)
	rewrites := w.c.Say.Rewrites()
	if news || !rewrites && now.Sub(w.last) >= repeatAfter {
		w.last = now
		e := say.NewEvent(string(leasehold.EventWaiting), now).Of(w.leader.Key, 0)
		e.Holder, e.LastsMs, e.Advice = &say.Record{Table: w.t.Table, Record: w.leader}, say.Millis(now.Sub(w.began)), w.advice
		text := line
		if w.advice != "" {
			text += ": " + w.advice
		}
		w.c.Say.Tell(e, "%s", text)
	}
	if rewrites {
		w.c.Say.Rewrite(line)
	}
}

// ignores reports whether the leader has renewed its term for longer than its lease, and
// has not resigned: it works on for long, or does not listen.
func (w *stepWait) ignores(ctx context.Context, now time.Time) bool {
	if now.Sub(w.began) <= w.leader.Lease {
		return false
	}
	r, err := w.t.Locks.Get(ctx, w.leader.Key.Partition)
	return err == nil && r.Grant == w.leader.Grant && r.Version != w.leader.Version
}

func (w *stepWait) line(now time.Time) string {
	return fmt.Sprintf("waiting for %s, who leads %s, to step down: asked %s ago",
		wording.Owner(w.leader.Owner), wording.Key(w.leader.Key), wording.Age(now.Sub(w.began)))
}
