package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
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
	s, err := a.open(cmd, "")
	if err != nil {
		return err
	}
	defer s.close()
	return s.withLocks(cmd.Context(), func(ctx context.Context, locks *leasehold.Client) error {
		e, err := election.New(locks, key)
		if err != nil {
			return answer(err)
		}
		for l, err := range e.Observe(ctx) {
			if err != nil {
				return answer(err)
			}
			line, err := a.leaderLine(l)
			if err != nil {
				return err
			}
			a.say.clear()
			if _, err := fmt.Fprintln(a.Stdout, line); err != nil {
				return err
			}
		}
		return answer(context.Cause(ctx))
	})
}

// leaderLine says who leads from now on: as a sentence on a terminal, as
// tab-separated values in a pipe, or as a JSON object.
func (a *app) leaderLine(l election.Leader) (string, error) {
	now, nobody := a.Now(), l == election.Leader{}
	switch {
	case a.flags.json:
		out := leaderJSON{Time: timeJSON(now)}
		if !nobody {
			out.seatJSON = &seatJSON{l.Owner, l.Value, l.Token}
		}
		b, err := json.Marshal(out)
		return string(b), err
	case !isTerminal(a.Stdout):
		return strings.Join([]string{timeJSON(now), printableOrEmpty(l.Owner), printableOrEmpty(l.Value), tokenText(leasehold.Record{Token: l.Token})}, "\t"), nil
	case nobody:
		return now.Local().Format(time.TimeOnly) + "  nobody leads", nil
	}
	line := now.Local().Format(time.TimeOnly) + "  " + shortOwner(l.Owner) + " leads"
	if l.Token != 0 {
		line += fmt.Sprintf(", term %d", l.Token)
	}
	if l.Value != "" {
		line += ": " + printable(l.Value)
	}
	return line, nil
}
