package cli

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

// leaderJSON is one line of elect --watch --json. Without a leader it has only
// the time.
type leaderJSON struct {
	Time string `json:"time"`
	*seatJSON
}

type seatJSON struct {
	Owner string `json:"owner"`
	Value string `json:"value"`
	Token int64  `json:"token"`
}

// watchLeader writes the leader and every change of leader until a signal ends
// it.
func (a *app) watchLeader(cmd *cobra.Command, key string) error {
	return a.onTable(cmd, leasehold.Config{}, func(ctx context.Context, _ *store.Store, locks *leasehold.Client) error {
		e, err := election.New(locks, key)
		if err != nil {
			return err
		}
		for l, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			line, err := a.leaderLine(l)
			if err != nil {
				return err
			}
			a.say.Clear()
			if err := a.Stdout.Show(line, "\n"); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
}

// leaderLine says who leads from now on: as a sentence on a terminal, as
// tab-separated values in a pipe, or as a JSON object.
func (a *app) leaderLine(l election.Leader) (string, error) {
	now, nobody := a.Now(), l == election.Leader{}
	switch {
	case a.flags.json:
		out := leaderJSON{Time: wording.Time(now)}
		if !nobody {
			out.seatJSON = &seatJSON{l.Owner, l.Value, l.Token}
		}
		b, err := json.Marshal(out)
		return string(b), err
	case !a.Stdout.Terminal:
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
