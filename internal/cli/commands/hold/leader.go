package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// stepDown asks the leader to resign, and waits until it has.
func (c *command) stepDown(cmd *cobra.Command, key string) error {
	return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
		e, err := election.New(t.Locks, key)
		if err != nil {
			return err
		}
		c.Say.Note("asking the leader of %s to step down, and waiting until it has", wording.Name(key))
		end := c.waitFor(ctx, t, key)
		err = e.StepDown(ctx)
		end()
		switch {
		case errors.Is(err, election.ErrNoLeader):
			return failure.Like(err, "nobody leads "+wording.Name(key))
		case errors.Is(err, election.ErrLeaderDead):
			return failure.Like(err, "the leader of "+wording.Name(key)+" appears dead, and cannot be asked: the next candidate takes over, see leasehold get "+wording.ShellWord(key))
		default:
			return err
		}
	})
}

// waitFor reports the leader while it may resign, until end is called: on a terminal each
// second, elsewhere once the leader has had a lease to read the request. It reports nothing
// for a damaged record: the request to the leader meets that error too.
func (c *command) waitFor(ctx context.Context, t *store.Table, key string) (end func()) {
	r, err := t.Locks.Get(ctx, key)
	if err != nil || r.Released {
		return func() {}
	}
	began, advised := c.Now(), false
	stop := seconds.Each(func() {
		now := c.Now()
		lasts := now.Sub(began)
		line := fmt.Sprintf("waiting for %s, who leads %s, to step down: asked %s ago", wording.Owner(r.Owner), wording.Key(r.Key), wording.Age(lasts))
		if !advised && lasts > durations.Sum(r.Lease, time.Second) { // a dead leader is known to be dead by now
			advised = true
			e := say.NewEvent(string(leasehold.EventWaiting), now).Of(r.Key, 0)
			e.Holder, e.LastsMs = &say.Record{Table: t.Table, Record: r}, say.Millis(lasts)
			e.Advice = fmt.Sprintf("it has not resigned: to take its term at once, leasehold break %s --token %d", wording.ShellKey(r.Key), r.Token)
			c.Say.Tell(e, "%s: %s", line, e.Advice)
		}
		if c.Say.Rewrites() {
			c.Say.Rewrite(line)
		}
	})
	return func() {
		stop()
		c.Say.Clear()
	}
}

// Leader is one line of elect --watch --json. Without a leader it contains only the time.
type Leader struct {
	Time string `json:"time"`
	*seat
}

type seat struct {
	Owner string `json:"owner"`
	Value string `json:"value"`
	Token int64  `json:"token"`
}

// watchLeader writes the leader and every change of leader until a signal arrives.
func (c *command) watchLeader(cmd *cobra.Command, key string) error {
	return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
		e, err := election.New(t.Locks, key)
		if err != nil {
			return err
		}
		for l, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			line, err := c.leaderLine(l)
			if err != nil {
				return err
			}
			c.Say.Clear()
			if err := c.Stdout.Show(line, "\n"); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
}

// leaderLine describes the new leader: as a sentence on a terminal, as tab-separated values
// in a pipe, or as a JSON object.
func (c *command) leaderLine(l election.Leader) (string, error) {
	now, nobody := c.Now(), l == election.Leader{}
	switch {
	case c.JSON:
		out := Leader{Time: wording.Time(now)}
		if !nobody {
			out.seat = &seat{l.Owner, l.Value, l.Token}
		}
		b, err := json.Marshal(out)
		return string(b), err
	case !c.Stdout.Terminal:
		return say.Tabbed(wording.Time(now), wording.Cell(l.Owner), wording.Cell(l.Value), wording.Token(l.Token)), nil
	case nobody:
		return now.Local().Format(time.TimeOnly) + "  nobody leads", nil
	}
	line := now.Local().Format(time.TimeOnly) + "  " + wording.Owner(l.Owner) + " leads"
	if l.Token != 0 {
		line += fmt.Sprintf(", term %d", l.Token)
	}
	if l.Value != "" {
		line += ": " + visible.Word(l.Value)
	}
	return line, nil
}
