package election_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestLeadMethodResignsAndReturnsErrorOfItsFunction(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		done := errors.New("done")
		for _, want := range []error{nil, done, leasehold.ErrLost} { // ErrLost stands for the loss of another lock: the term itself is not lost
			var term *leasehold.Lock
			calls := 0
			err := e.Lead(t.Context(), "", func(_ context.Context, l *leasehold.Lock) error {
				calls++
				term = l
				return want
			})
			if err != want || calls != 1 { //nolint:errorlint // no errors.Is here: Lead returns the function's own error unwrapped
				t.Errorf("%v after %d calls, want %v", err, calls, want)
			}
			lab.WantErr(t, "the term", term.Err(), leasehold.ErrReleased)
		}
	})
}

func TestLeadMethodCampaignsAgainAfterLossOfTerm(t *testing.T) {
	lab.Each(t, map[string]func(context.Context) error{
		"function returns the cause":     context.Cause,
		"function returns nil":           func(context.Context) error { return nil },
		"function returns another error": func(context.Context) error { return errors.New("broken pipe") },
	}, func(t *testing.T, w *lab.World, answer func(context.Context) error) {
		e, _, _ := elects(w, lab.Config())
		other, _ := w.Client(lab.Config())
		var tokens []int64
		err := e.Lead(t.Context(), "", func(ctx context.Context, term *leasehold.Lock) error {
			tokens = append(tokens, term.Token())
			lab.Want(t, "lease of the term", term.Record().Lease, 7*time.Second)
			if len(tokens) == 3 {
				return nil
			}
			breakTerm(w, other)
			<-ctx.Done()
			lab.WantErr(t, "cause", context.Cause(ctx), leasehold.ErrLost)
			return answer(ctx)
		}, leasehold.WithLease(7*time.Second)) // the options apply to each term
		if err != nil || len(tokens) != 3 {
			t.Fatalf("error %v, terms %v", err, tokens)
		}
		if tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			t.Errorf("the terms do not increase: %v", tokens)
		}
	})
}

func TestLeadMethodCampaignsAgainAfterUnnoticedBreakOfTerm(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		other, _ := w.Client(lab.Config())
		calls := 0
		err := e.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error {
			calls++
			if calls == 1 {
				// The function returns before the next renewal, so the leader has not
				// noticed the break yet.
				breakTerm(w, other)
			}
			return nil
		})
		lab.WantErr(t, "lead", err, nil)
		lab.Want(t, "calls", calls, 2)
	})
}

func TestLeadMethodWaitsForFunctionEvenAfterContextHasEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := elect(w, lab.Config()), elect(w, lab.Config())
		stop, flush := errors.New("stop"), errors.New("flush failed")
		ctx, cancel := context.WithCancelCause(t.Context())
		var released atomic.Bool
		led := lab.Go(func() error {
			return a.Lead(ctx, "", func(ctx context.Context, term *leasehold.Lock) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				released.Store(term.Err() != nil)
				return flush
			})
		})
		campaigned := lab.Go(func() error {
			return b.Lead(ctx, "", func(context.Context, *leasehold.Lock) error {
				t.Error("the function was called after its context had ended")
				return nil
			})
		})
		lab.Elapse(time.Second)
		cancel(stop)
		isStop := func(err error) bool { // the error's text is only the cause, but the error also matches context.Canceled
			return errors.Is(err, stop) && errors.Is(err, context.Canceled) && err.Error() == stop.Error()
		}
		if err := <-campaigned; !isStop(err) {
			t.Errorf("the candidate: %v", err)
		}
		lab.WantErr(t, "leader", <-led, stop, context.Canceled, flush)
		lab.Want(t, "term was released before the function returned", released.Load(), false)
		lab.WantErr(t, "leader after the release", lab.ErrorOf(a.Leader(t.Context())), election.ErrNoLeader)
		if err := a.Lead(ctx, "", func(context.Context, *leasehold.Lock) error { return nil }); !isStop(err) {
			t.Errorf("Lead with an ended context: %v", err)
		}
	})
}

func TestLeadMethodReturnsCauseOfCancelledContext(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		for _, obeys := range []func(context.Context) error{context.Cause, func(context.Context) error { return nil }} {
			ctx, cancel := context.WithCancel(t.Context())
			err := e.Lead(ctx, "", func(ctx context.Context, _ *leasehold.Lock) error {
				cancel()
				<-ctx.Done()
				return obeys(ctx)
			})
			if err != context.Canceled { //nolint:errorlint // no errors.Is here: Lead returns the cause of the context unwrapped
				t.Errorf("%v", err)
			}
		}
	})
}

// If the function joins the cause of its end with another error, such as leasehold.ErrUnknownOutcome
// of a commit, Lead must return the other error, too.
func TestLeadMethodReturnsErrorJoinedWithCauseByFunction(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w.Work(), lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		err := e.Lead(ctx, "", func(ctx context.Context, term *leasehold.Lock) error {
			wire.SetFault(lab.On(lab.Call.Commits, lab.LoseReply))
			time.AfterFunc(time.Second, cancel)
			return term.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		})
		lab.WantErr(t, "lead", err, context.Canceled, leasehold.ErrUnknownOutcome)
	})
}

func TestLeadMethodReturnsWhenClientIsClosed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, leader, _ := elects(w, lab.Config())
		b, candidate, _ := elects(w, lab.Config())
		lead := func(ctx context.Context, _ *leasehold.Lock) error { <-ctx.Done(); return nil }
		led := lab.Go(func() error { return a.Lead(t.Context(), "", lead) })
		campaigned := lab.Go(func() error { return b.Lead(t.Context(), "", lead) })
		for _, c := range []*leasehold.Client{candidate, leader} {
			lab.OK(t, c.Close(t.Context()))
		}
		for _, ended := range []<-chan error{campaigned, led} {
			lab.WantErr(t, "error of Lead", <-ended, leasehold.ErrClosed)
		}
	})
}

func TestLeadMethodReleasesTermIfFunctionPanicsOrExits(t *testing.T) {
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
			lab.WantErr(t, name+": leader", lab.ErrorOf(e.Leader(t.Context())), election.ErrNoLeader)
		}
	})
}

// Without the done mark, the next call repeats the work. So Lead must not report that the work is
// done.
func TestLeadMethodFailsIfDoneMarkIsNotStored(t *testing.T) {
	type row struct {
		asked bool // the function ends because the leader was asked to step down
		want  error
	}
	lab.Each(t, map[string]row{
		"release is applied":                       {false, nil},
		"release has no answers":                   {false, leasehold.ErrUnknownOutcome},
		"release is applied, leader was asked":     {true, nil},
		"release has no answers, leader was asked": {true, leasehold.ErrUnknownOutcome},
	}, func(t *testing.T, w *lab.World, tc row) {
		e, c, wire := elects(w, lab.Config())
		operator := elect(w, lab.Config())
		calls := 0
		led := lab.Go(func() error {
			return e.Lead(t.Context(), "", func(ctx context.Context, _ *leasehold.Lock) error {
				if calls++; tc.asked && calls == 1 {
					<-ctx.Done()
				}
				if tc.want != nil {
					wire.SetFault(lab.On(lab.Call.Releases, lab.Drop))
				}
				return nil
			}, leasehold.Once("v7"))
		})
		if tc.asked {
			_ = operator.StepDown(t.Context())
		}
		lab.WantErr(t, "lead", <-led, tc.want)
		lab.Want(t, "calls", calls, 1)
		wire.SetFault(nil)
		r := lab.Must(c.Get(t.Context(), seat))(t)
		lab.Want(t, "the record has the done mark", r.Done != nil, tc.want == nil)
		lab.OK(t, c.Close(t.Context()))
	})
}

func TestLeadMethodStoresNoDoneMarkIfFunctionWasNotCalled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, event leasehold.Event) {
			if event.Kind == leasehold.EventGranted {
				cancel()
			}
		}
		e, c, _ := elects(w, cfg)
		err := e.Lead(ctx, "", func(context.Context, *leasehold.Lock) error {
			t.Error("the function was called")
			return nil
		}, leasehold.Once("v7"))
		lab.WantErr(t, "lead", err, context.Canceled)
		if done := lab.Must(c.Get(t.Context(), seat))(t).Done; done != nil {
			t.Errorf("the record has the done mark: %v", done)
		}
	})
}

// After its first term, Lead retries denied requests for its own key. In the term's context, denied
// requests for other keys must still fail.
func TestDeniedAcquireOfOtherKeyIsNotRetriedInContextOfTerm(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, wire := elects(w, lab.Config())
		w.Release(campaign(w, e, ""))
		term := campaign(w, e, "")
		wire.SetFault(lab.Refused("AccessDeniedException"))
		ctx, cancel := context.WithTimeout(term.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "other"); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("denied Acquire: %v", err)
		}
		wire.SetFault(nil)
		w.Release(term)
	})
}

func TestLeadMethodReturnsAtOnceIfClientIsClosedDuringPause(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, _ := elects(w, lab.Config())
		operator := elect(w, lab.Config())
		led := lab.Go(func() error { return e.Lead(t.Context(), "", works(0, make(chan error, 1))) })
		lab.WantErr(t, "step down", operator.StepDown(t.Context()), nil) // Lead now pauses, so that another candidate can be elected
		lab.OK(t, c.Close(t.Context()))
		began := time.Now()
		lab.WantErr(t, "lead", <-led, leasehold.ErrClosed)
		lab.WantTook(t, "returned after", began, 0, 0)
	})
}

func TestFunctionsPassedToLeadNeverRunConcurrently(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		other, _ := w.Client(lab.Config())
		leave, led := make(chan struct{}), make(chan error)
		var running, begun atomic.Int32
		lead := func(context.Context, *leasehold.Lock) error {
			if running.Add(1) > 1 {
				t.Error("two functions run at once")
			}
			defer running.Add(-1)
			begun.Add(1)
			<-leave // the function ignores the end of its term and keeps running
			return nil
		}
		for range 2 {
			go func() { led <- e.Lead(t.Context(), "", lead) }()
		}
		synctest.Wait()
		// The first break ends the term of the running function. The second break ends the next
		// term. The function of that term must not start before the first function returns.
		for range 2 {
			breakTerm(w, other)
			lab.Elapse(time.Minute)
		}
		if l, err := e.Leader(t.Context()); err != nil || begun.Load() != 1 {
			t.Fatalf("the second candidate was not elected: %v, %v; %d functions begun", l, err, begun.Load())
		}
		close(leave)
		for range 2 {
			lab.OK(t, <-led)
		}
		// The function has run in three terms: in the term that the first break ended and, after that,
		// once for each of the two calls of Lead. It has not run in the term that the second break ended.
		lab.Want(t, "functions begun", begun.Load(), 3)
	})
}

func TestLeadMethodFailsIfNestedOrIfRecordIsDamaged(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		lead := func(ctx context.Context, term *leasehold.Lock) error {
			inner := func(context.Context, *leasehold.Lock) error { return nil }
			lab.WantErr(t, "nested Lead", e.Lead(ctx, "", inner), leasehold.ErrDeadlock)
			for _, ctx := range []context.Context{ctx, term.Context()} {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				lab.WantErr(t, "nested Lead with Reentrant", e.Lead(ctx, "", inner, leasehold.Reentrant()), leasehold.ErrDeadlock)
			}
			return nil
		}
		lab.OK(t, e.Lead(t.Context(), "", lead))
		w.Put(map[string]types.AttributeValue{"key": lab.Str(seat), "ownerName": lab.Str("someone")})
		lab.WantAs[*leasehold.RecordError](t, "Lead with a damaged record", e.Lead(t.Context(), "", lead))
	})
}

func TestLeadMethodCallsNoFunctionIfClientIsClosedAfterGrant(t *testing.T) {
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
			t.Error("the function was called after the client had closed")
			return nil
		})
		lab.WantErr(t, "campaign", err, leasehold.ErrClosed)
	})
}

// During an outage, the leader loses its term because it cannot renew. Afterwards the record still
// contains the grant of that term. The leader knows that no other client holds the key, so it
// replaces the grant without waiting for a lease.
func TestLeaderIsReelectedSoonAfterOutage(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		e, c, wire := elects(w, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		var back time.Time
		terms := 0
		err := e.Lead(ctx, "", func(ctx context.Context, _ *leasehold.Lock) error {
			if terms++; terms == 2 {
				// The limit leaves time for a request that hangs, and for the pause before
				// it is repeated.
				lab.WantTook(t, "elected again after the outage, after", back, 0, 6*time.Second)
				cancel()
				return nil
			}
			wire.SetFault(lab.Cut)
			<-ctx.Done()
			time.AfterFunc(time.Minute, func() {
				back = time.Now()
				wire.SetFault((*lab.Request).Send)
			})
			return ctx.Err()
		})
		lab.WantErr(t, "lead", err, context.Canceled)
		lab.Want(t, "terms", terms, 2)
		lab.OK(t, c.Close(t.Context()))
	})
}

func TestLeadMethodRetriesIfAccessIsDeniedAfterFirstTerm(t *testing.T) {
	for _, code := range []string{"ExpiredTokenException", "UnrecognizedClientException", "AccessDeniedException"} {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				e, c, wire := elects(w, lab.Config())
				terms := make(chan int64, 10)
				ctx, cancel := context.WithCancel(t.Context())
				ended := lab.Go(func() error {
					return e.Lead(ctx, "", func(ctx context.Context, term *leasehold.Lock) error {
						terms <- term.Token()
						<-ctx.Done()
						return nil
					})
				})
				first := <-terms
				wire.SetFault(lab.Refused(code))
				lab.Elapse(2 * time.Minute) // long enough for the leader to lose its term and campaign again
				if len(ended) > 0 {
					t.Fatalf("Lead returned %v", <-ended)
				}
				wire.SetFault(nil)
				lab.Elapse(5 * time.Second)
				if len(terms) == 0 {
					t.Error("there was no second term")
				} else if next := <-terms; next <= first {
					t.Errorf("term %d after %d", next, first)
				}
				cancel()
				lab.WantErr(t, "error of Lead", <-ended, context.Canceled)
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestLeadMethodFailsIfAccessIsDeniedBeforeFirstTerm(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, wire := elects(w, lab.Config())
		other := lab.Must(election.New(c, "other"))(t)
		lab.Must(other.Campaign(t.Context(), ""))(t)
		wire.SetFault(lab.Refused("AccessDeniedException"))
		lab.WantAs[*leasehold.OpError](t, "lead", e.Lead(t.Context(), "", func(context.Context, *leasehold.Lock) error { return nil }))
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}
