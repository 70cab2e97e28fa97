package hold

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Leader is one line of elect --watch --json. Without a leader it has only
// the time.
type Leader struct {
	Time string `json:"time"`
	*seat
}

type seat struct {
	Owner string `json:"owner"`
	Value string `json:"value"`
	Token int64  `json:"token"`
}

// watchLeader writes the leader and every change of leader until a signal ends
// it.
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

// leaderLine says who leads from now on: as a sentence on a terminal, as
// tab-separated values in a pipe, or as a JSON object.
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
		line += ": " + visible.Name(l.Value)
	}
	return line, nil
}
