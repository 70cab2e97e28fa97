package election_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seat is the election that these tests are about.
const seat = "scheduler"

// elects returns a process that may be elected, and its wire.
func elects(w *lab.World, cfg leasehold.Config) (*election.Election, *leasehold.Client, *lab.Wire) {
	c, wire := w.Client(cfg)
	return newElection(w, c), c, wire
}

func newElection(w *lab.World, c *leasehold.Client) *election.Election {
	w.T.Helper()
	e, err := election.New(c, seat)
	if err != nil {
		w.T.Fatal(err)
	}
	return e
}

func campaign(w *lab.World, e *election.Election, value string) *leasehold.Lock {
	w.T.Helper()
	term, err := e.Campaign(w.T.Context(), value)
	if err != nil {
		w.T.Fatal(err)
	}
	return term
}

// breakTerm takes the seat from whoever has it.
func breakTerm(w *lab.World, c *leasehold.Client) {
	w.T.Helper()
	r, err := c.Get(w.T.Context(), seat)
	if err == nil {
		err = c.Break(w.T.Context(), r)
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

func TestALeaderIsReadAsItIsStored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, _ := elects(w, lab.Config())
		b, _, wire := elects(w, lab.Config())
		if l, err := b.Leader(t.Context()); !errors.Is(err, election.ErrNoLeader) || l != (election.Leader{}) {
			t.Errorf("before anybody was elected: %v, %v", l, err)
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
		if _, err := b.Leader(t.Context()); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("after it resigned: %v", err)
		}
		second := campaign(w, b, "")
		defer w.Release(second)
		if l, err := a.Leader(t.Context()); err != nil || l.Value != "" || l.Token != second.Token() {
			t.Errorf("a leader without a value: %v, %v", l, err)
		}
		if second.Token() <= first.Token() {
			t.Errorf("terms %d and then %d", first.Token(), second.Token())
		}
	})
}

func TestAValueThatTheLayoutCannotCarryIsRefusedBeforeAnythingIsSent(t *testing.T) {
	lab.InLayout(t, layout.DynamoDLM{}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		e, _, wire := elects(w, cfg)
		if _, err := e.Campaign(t.Context(), "here"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("campaign: %v", err)
		}
		if err := e.Lead(t.Context(), "here", nil); err == nil {
			t.Error("led without a function")
		}
		lead := func(context.Context, *leasehold.Lock) error { return nil }
		if err := e.Lead(t.Context(), "here", lead); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("lead: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("%d requests", len(sent))
		}
		if err := e.Lead(t.Context(), "", lead); err != nil {
			t.Errorf("without a value: %v", err)
		}
	})
}

func TestAnElectionIsUnderAKeyThatCanBeAcquired(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		if _, err := election.New(nil, seat); err == nil {
			t.Error("a nil client was taken")
		}
		for _, key := range []string{"", "leasehold/session/abc", strings.Repeat("k", 2049)} {
			if _, err := election.New(c, key); err == nil {
				t.Errorf("an election under a key of %d bytes", len(key))
			}
		}
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard"}}
		cfg := lab.Config()
		cfg.Table, cfg.Layout = spec.Name, spec.Layout
		sorted, _ := w.Client(cfg)
		if _, err := election.New(sorted, seat); err == nil {
			t.Error("an election under half a key")
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("%d requests", len(sent))
		}
	})
}

func TestLeadResignsAndReturnsWhatItsFunctionDoes(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		done := errors.New("done")
		for _, want := range []error{nil, done, leasehold.ErrLost} { // a lock of its own, not the term
			var term *leasehold.Lock
			calls := 0
			err := e.Lead(t.Context(), "", func(_ context.Context, l *leasehold.Lock) error {
				calls++
				term = l
				return want
			})
			if err != want || calls != 1 { //nolint:errorlint // it is not wrapped
				t.Errorf("%v after %d calls, want %v", err, calls, want)
			}
			if !errors.Is(term.Err(), leasehold.ErrReleased) {
				t.Errorf("the term: %v", term.Err())
			}
		}
	})
}

func TestLeadCampaignsAgainWhenItsTermIsLost(t *testing.T) {
	for name, answer := range map[string]func(context.Context) error{
		"and its function says so":              context.Cause,
		"and its function says nothing":         func(context.Context) error { return nil },
		"and its function says something other": func(context.Context) error { return errors.New("broken pipe") },
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				e, _, _ := elects(w, lab.Config())
				other, _ := w.Client(lab.Config())
				var tokens []int64
				err := e.Lead(t.Context(), "", func(ctx context.Context, term *leasehold.Lock) error {
					tokens = append(tokens, term.Token())
					if len(tokens) == 3 {
						return nil
					}
					breakTerm(w, other)
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), leasehold.ErrLost) {
						t.Errorf("the context ended with %v", context.Cause(ctx))
					}
					return answer(ctx)
				})
				if err != nil || len(tokens) != 3 {
					t.Fatalf("%v after the terms %v", err, tokens)
				}
				if tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
					t.Errorf("the terms do not increase: %v", tokens)
				}
			})
		})
	}
}

func TestATermThatItsReleaseFindsBrokenIsCampaignedForAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		other, _ := w.Client(lab.Config())
		calls := 0
		err := e.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error {
			calls++
			if calls == 1 {
				breakTerm(w, other) // which no renewal has noticed yet
			}
			return nil
		})
		if err != nil || calls != 2 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

func TestLeadEndsWithItsContext(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _, _ := elects(w, lab.Config())
		b, _, _ := elects(w, lab.Config())
		stop, flush := errors.New("stop"), errors.New("flush failed")
		ctx, cancel := context.WithCancelCause(t.Context())
		led := make(chan error)
		var released atomic.Bool
		go func() {
			led <- a.Lead(ctx, "", func(ctx context.Context, term *leasehold.Lock) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				released.Store(term.Err() != nil)
				return flush
			})
		}()
		synctest.Wait()
		campaigned := make(chan error)
		go func() {
			campaigned <- b.Lead(ctx, "", func(context.Context, *leasehold.Lock) error {
				t.Error("it was called though its context had ended")
				return nil
			})
		}()
		lab.Elapse(time.Second)
		cancel(stop)
		if err := <-campaigned; err != stop { //nolint:errorlint // it is the cause itself
			t.Errorf("the candidate: %v", err)
		}
		if err := <-led; !errors.Is(err, stop) || !errors.Is(err, flush) {
			t.Errorf("the leader: %v", err)
		}
		if released.Load() {
			t.Error("the term was given up before the function had returned")
		}
		if _, err := a.Leader(t.Context()); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("the seat: %v", err)
		}
		if err := a.Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil }); err != stop { //nolint:errorlint // as above
			t.Errorf("begun too late: %v", err)
		}
	})
}

func TestTheEndOfTheContextIsTheAnswerOfAFunctionThatObeysIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		for _, obeys := range []func(context.Context) error{context.Cause, func(context.Context) error { return nil }} {
			ctx, cancel := context.WithCancel(t.Context())
			err := e.Lead(ctx, "", func(ctx context.Context, _ *leasehold.Lock) error {
				cancel()
				<-ctx.Done()
				return obeys(ctx)
			})
			if err != context.Canceled { //nolint:errorlint // it is the cause itself
				t.Errorf("%v", err)
			}
		}
	})
}

func TestLeadOfAClosedClientEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, leader, _ := elects(w, lab.Config())
		b, candidate, _ := elects(w, lab.Config())
		led, campaigned := make(chan error), make(chan error)
		go func() {
			led <- a.Lead(t.Context(), "", func(ctx context.Context, _ *leasehold.Lock) error {
				<-ctx.Done()
				return nil
			})
		}()
		synctest.Wait()
		go func() {
			campaigned <- b.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error { return nil })
		}()
		synctest.Wait()
		for _, c := range []*leasehold.Client{candidate, leader} {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, ended := range []chan error{campaigned, led} {
			if err := <-ended; !errors.Is(err, leasehold.ErrClosed) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestAFunctionThatPanicsOrExitsGivesItsTermUp(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		for name, leave := range map[string]func(){"panic": func() { panic("over") }, "exit": runtime.Goexit} {
			gone := make(chan any)
			go func() {
				defer func() { gone <- recover() }()
				_ = e.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error {
					leave()
					return nil
				})
			}()
			if got := <-gone; name == "panic" && got != "over" {
				t.Errorf("%s: recovered %v", name, got)
			}
			if _, err := e.Leader(t.Context()); !errors.Is(err, election.ErrNoLeader) {
				t.Errorf("%s: the seat: %v", name, err)
			}
		}
	})
}

func TestNoFunctionOfAnElectionRunsBesideAnother(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		other, _ := w.Client(lab.Config())
		leave, led := make(chan struct{}), make(chan error)
		var running, begun atomic.Int32
		lead := func(context.Context, *leasehold.Lock) error {
			if running.Add(1) > 1 {
				t.Error("two at once")
			}
			defer running.Add(-1)
			begun.Add(1)
			<-leave // whatever becomes of the term
			return nil
		}
		for range 2 {
			go func() { led <- e.Lead(t.Context(), "", lead) }()
		}
		synctest.Wait()
		for range 2 { // that of the one that runs on, and that of the one that waits for it
			breakTerm(w, other)
			lab.Elapse(time.Minute)
		}
		if l, err := e.Leader(t.Context()); err != nil || begun.Load() != 1 {
			t.Fatalf("the second in line was not elected: %v, %v; %d functions begun", l, err, begun.Load())
		}
		close(leave)
		for range 2 {
			if err := <-led; err != nil {
				t.Error(err)
			}
		}
		if begun.Load() != 3 { // the one whose term was broken, the other, and the first again
			t.Errorf("%d functions begun", begun.Load())
		}
	})
}

func TestLeadReturnsWhatWaitingDoesNotCure(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		lead := func(ctx context.Context, _ *leasehold.Lock) error {
			err := e.Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil })
			if !errors.Is(err, leasehold.ErrDeadlock) {
				t.Errorf("under its own term: %v", err)
			}
			return nil
		}
		if err := e.Lead(t.Context(), "", lead); err != nil {
			t.Error(err)
		}
		w.Put(map[string]types.AttributeValue{"key": lab.Str(seat), "ownerName": lab.Str("someone")})
		if err := e.Lead(t.Context(), "", lead); !errors.Is(err, leasehold.ErrBadRecord) {
			t.Errorf("over a damaged record: %v", err)
		}
	})
}

func TestLeadOfAClientThatIsClosedBeforeTheTermBeginsEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var c *leasehold.Client
		cfg := lab.Config()
		cfg.OnEvent = func(ctx context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventGranted {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				_ = c.Close(ctx)
			}
		}
		e, client, _ := elects(w, cfg)
		c = client
		err := e.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error {
			t.Error("it was called under a lock that was given up")
			return nil
		})
		if !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}
