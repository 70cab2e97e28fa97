package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seat is the key of the election in these tests.
const seat = "scheduler"

// elects makes a candidate for the election of these tests. It returns the candidate, its
// client, and the simulated network of that client.
func elects(w *lab.World, cfg leasehold.Config) (*election.Election, *leasehold.Client, *lab.Wire) {
	c, wire := w.Client(cfg)
	return newElection(w, c), c, wire
}

// elect returns a candidate for the election of these tests.
func elect(w *lab.World, cfg leasehold.Config) *election.Election {
	w.T.Helper()
	e, _, _ := elects(w, cfg)
	return e
}

func newElection(w *lab.World, c *leasehold.Client) *election.Election {
	w.T.Helper()
	return lab.Must(election.New(c, seat))(w.T)
}

func campaign(w *lab.World, e *election.Election, value string) *leasehold.Lock {
	w.T.Helper()
	return lab.Must(e.Campaign(w.T.Context(), value))(w.T)
}

// breakTerm breaks the current leader's grant, as an operator does.
func breakTerm(w *lab.World, c *leasehold.Client) {
	w.T.Helper()
	r := lab.Must(c.Get(w.T.Context(), seat))(w.T)
	lab.OK(w.T, c.Break(w.T.Context(), r, leasehold.BreakOptions{}))
}

func TestLeaderMethodReturnsOnlyCurrentLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, _ := elects(w, lab.Config())
		b, _, wire := elects(w, lab.Config())
		if l, err := b.Leader(t.Context()); !errors.Is(err, election.ErrNoLeader) || l != (election.Leader{}) {
			t.Errorf("before an election: %v, %v", l, err)
		}
		first := campaign(w, a, "10.0.0.7:8080")
		wire.Sent()
		want := election.Leader{Owner: first.Record().Owner, Value: "10.0.0.7:8080", Token: first.Token()}
		if l, err := b.Leader(t.Context()); err != nil || l != want {
			t.Errorf("leader: %v, %v; want %v", l, err, want)
		}
		if sent := wire.Sent(); len(sent) != 1 || sent[0].Op != "GetItem" || !strings.Contains(string(sent[0].Body), `"ConsistentRead":true`) {
			t.Errorf("%d requests to read the leader: %s", len(sent), sent[0].Body)
		}
		w.Release(first)
		lab.WantErr(t, "after the leader resigned", lab.ErrorOf(b.Leader(t.Context())), election.ErrNoLeader)
		second := campaign(w, b, "")
		defer w.Release(second)
		if l, err := a.Leader(t.Context()); err != nil || l.Value != "" || l.Token != second.Token() {
			t.Errorf("leader without a value: %v, %v", l, err)
		}
		if second.Token() <= first.Token() {
			t.Errorf("term %d, then term %d", first.Token(), second.Token())
		}
	})
}

func TestCampaignWithNoWaitReplacesOnlyDeadLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, wire := elects(w, lab.Config())
		b, _, _ := elects(w, lab.Config())
		campaign(w, a, "")
		began := time.Now()
		lab.WantErr(t, "campaign against a live leader", lab.ErrorOf(b.Campaign(t.Context(), "", leasehold.NoWait())), leasehold.ErrHeld)
		lab.Want(t, "campaign returned after", time.Since(began), 0)
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Hour)
		// A new candidate must observe the record for one lease before it finds the leader dead.
		c, _, _ := elects(w, lab.Config())
		began = time.Now()
		term, err := c.Campaign(t.Context(), "", leasehold.NoWait())
		if err != nil || time.Since(began) != 20*time.Second {
			t.Fatalf("an hour after the leader died: %v after %v", err, time.Since(began))
		}
		w.Release(term)
	})
}

func TestCampaignRejectsValueThatLayoutCannotStore(t *testing.T) {
	lab.InLayout(t, layout.DynamoDLM{}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		e, _, wire := elects(w, cfg)
		lab.WantErr(t, "campaign", lab.ErrorOf(e.Campaign(t.Context(), "here")), errors.ErrUnsupported)
		lab.WantFailed(t, "lead without a function", e.Lead(t.Context(), "here", nil))
		lead := func(context.Context, *leasehold.Lock) error { return nil }
		lab.WantErr(t, "lead", e.Lead(t.Context(), "here", lead), errors.ErrUnsupported)
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "without a value", e.Lead(t.Context(), "", lead), nil)
	})
}

func TestFunctionNewRejectsNilClientAndInvalidKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lab.WantFailed(t, "an election with a nil client", lab.ErrorOf(election.New(nil, seat)))
		for _, key := range []string{"", "leasehold/session/abc", strings.Repeat("k", 2049)} {
			lab.WantFailed(t, fmt.Sprintf("an election with a key of %d bytes", len(key)), lab.ErrorOf(election.New(c, key)))
		}
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard"}}
		cfg := lab.Config()
		cfg.Table, cfg.Layout = spec.Name, spec.Layout
		sorted, _ := w.Client(cfg)
		lab.WantFailed(t, "an election without the sort key", lab.ErrorOf(election.New(sorted, seat)))
		lab.Want(t, "requests", len(wire.Sent()), 0)
	})
}
