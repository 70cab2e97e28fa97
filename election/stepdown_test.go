package election_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// works returns a function for Lead that waits until its context ends, and sleeps for the given
// pause, as if its work could not stop. It then sends the cause of its context, joined with the
// error of its term, to causes.
func works(pause time.Duration, causes chan<- error) func(context.Context, *leasehold.Lock) error {
	return func(ctx context.Context, term *leasehold.Lock) error {
		<-ctx.Done()
		time.Sleep(pause)
		causes <- errors.Join(context.Cause(ctx), term.Err())
		return ctx.Err()
	}
}

// isUpdate reports whether the request is an UpdateItem.
func isUpdate(c lab.Call) bool { return c.Op == "UpdateItem" }

// leads runs Lead, with a function from works, until stop is called. stop returns the error
// of Lead. Once the function's context has ended, the function sleeps for the given pause, and
// then sends the cause to causes.
func leads(t *testing.T, e *election.Election, value string, pause time.Duration) (causes chan error, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	causes = make(chan error, 100)
	led := lab.Go(func() error { return e.Lead(ctx, value, works(pause, causes)) })
	return causes, func() error { cancel(); return <-led }
}

func TestStepDownReleasesTermOnlyAfterFunctionHasReturned(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.Config())
		other, _, _ := elects(w, lab.Config())
		operator, _, asking := elects(w, lab.Config())
		causes, stop := leads(t, e, "", 30*time.Second) // the work continues for longer than a lease
		lab.Elapse(time.Second)
		first := lab.Must(operator.Leader(t.Context()))(t)
		next := make(chan *leasehold.Lock, 1)
		go func() { next <- campaign(w, other, "") }()
		wire.Sent()
		asking.Sent()
		began := time.Now()
		lab.WantErr(t, "step down", operator.StepDown(t.Context()), nil)
		if err := <-causes; !errors.Is(err, election.ErrAsked) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the function ended with %v, want ErrAsked while the term lasts", err)
		}
		// The leader notices the request at its next renewal, and the candidate notices the
		// release at its next poll. These delays add at most 6 s to the 30 s of work.
		lab.WantTook(t, "resigned after", began, 30*time.Second, 36*time.Second)
		term := <-next
		lab.Want(t, "token of the next term", term.Token(), first.Token+1)
		lab.WantTook(t, "next elected after", began, 0, 37*time.Second)
		for _, c := range wire.Sent() {
			if c.Op != "UpdateItem" && c.Op != "GetItem" {
				t.Errorf("the leader sent %s", c.Op)
			}
		}
		writes := lab.Count(asking.Sent(), func(c lab.Call) bool { return c.Op != "GetItem" })
		lab.Want(t, "writes of StepDown", writes, 1)
		lab.Elapse(time.Minute)
		lab.WantErr(t, "term after a request to the former leader", term.Err(), nil)
		lab.Want(t, "requests to step down", len(causes), 0)
		w.Release(term)
		lab.Elapse(polls)
		if l, err := operator.Leader(t.Context()); err != nil || l.Token != term.Token()+1 {
			t.Errorf("the former leader did not campaign again: %v, %v", l, err)
		}
		lab.WantErr(t, "error of Lead", stop(), context.Canceled)
	})
}

func TestSoleCandidateIsReelectedAfterStepDown(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, operator := elect(w, lab.Config()), elect(w, lab.Config())
		causes, stop := leads(t, e, "", 0)
		lab.Elapse(time.Second)
		for range 2 { // the second call of StepDown ends the second term
			lab.WantErr(t, "step down", operator.StepDown(t.Context()), nil)
			lab.WantErr(t, "cause of the function's end", <-causes, election.ErrAsked)
			// After it has stepped down, a leader pauses for 2 x LongestQueuePause, so that another
			// candidate can be elected. This test has no other candidate, so the same leader is
			// elected again.
			lab.Elapse(polls + 2*decide.LongestQueuePause)
			lab.WantErr(t, "leader after the pause", lab.ErrorOf(operator.Leader(t.Context())), nil)
		}
		_ = stop()
	})
}

func TestFunctionGivenToOnStepDownIsCalledForEarlierRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, operator := elect(w, lab.Config()), elect(w, lab.Config())
		term := campaign(w, e, "")
		asked := 0
		listen := func() { _ = e.OnStepDown(term, func() { asked++; w.Release(term) }) }
		if err := operator.StepDown(w.Within(6 * time.Second)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("step down before OnStepDown: %v", err)
		}
		listen() // registers the listener only after StepDown was called
		lab.Elapse(6 * time.Second)
		if asked != 1 || term.Err() == nil {
			t.Errorf("called %d times; the term: %v", asked, term.Err())
		}
	})
}

func TestCampaignResumesPauseThatItsContextHasEnded(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, operator := elect(w, lab.Config()), elect(w, lab.Config())
		term, asked := campaign(w, e, ""), make(chan struct{})
		lab.OK(t, e.OnStepDown(term, func() { close(asked) }))
		down := lab.Go(func() error { return operator.StepDown(t.Context()) })
		<-asked
		w.Release(term)
		began := time.Now()
		for range 3 {
			if early, err := e.Campaign(w.Within(time.Second/2), ""); err == nil {
				w.Release(early)
				t.Fatalf("elected after %v", time.Since(began))
			}
		}
		term = campaign(w, e, "")
		lab.WantTook(t, "elected again after", began, decide.LetOthers(0), decide.LetOthers(0)+time.Second/2)
		lab.OK(t, <-down)
		w.Release(term)
	})
}

func TestStepDownFailsWithoutLiveLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, wire := elects(w, lab.Config())
		operator, _, asking := elects(w, lab.Config())
		lab.WantErr(t, "without a record", operator.StepDown(t.Context()), election.ErrNoLeader)
		term := campaign(w, e, "")
		w.Release(term)
		lab.WantErr(t, "after the leader has resigned", operator.StepDown(t.Context()), election.ErrNoLeader)
		campaign(w, e, "")
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Minute)
		began := time.Now()
		lab.WantErr(t, "step down of a dead leader", operator.StepDown(t.Context()), election.ErrLeaderDead)
		lab.Want(t, "returned after", time.Since(began), 0)
		for _, c := range asking.Sent() {
			lab.Want(t, "operation", c.Op, "GetItem")
		}
		lives, _, theirs := elects(w, lab.Config())
		campaign(w, lives, "")
		theirs.SetFault(lab.Cut)
		lab.WantErr(t, "a leader that has died just now", operator.StepDown(t.Context()), election.ErrLeaderDead)
	})
}

func TestStepDownRequestToFormerLeaderDoesNotAffectNextLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		operator, _, asking := elects(w, lab.Config())
		first := campaign(w, e, "")
		var causes chan error
		var stop func() error
		asking.SetFault(lab.Once(isUpdate, func(r *lab.Request) (*http.Response, error) {
			w.Release(first)
			other, _, _ := elects(w, lab.Config())
			causes, stop = leads(t, other, "", 0)
			synctest.Wait()
			return r.Send()
		}))
		lab.WantErr(t, "step down of a former leader", operator.StepDown(t.Context()), nil)
		lab.Elapse(time.Minute)
		lab.Want(t, "requests to step down", len(causes), 0)
		lab.Want(t, "request to the next leader", w.Item(seat)["stepDown"], nil)
		// An older version of leasehold that acquires the key does not remove an old request from
		// the record. The current leader must ignore a request to an earlier leader.
		w.Update(seat, map[string]types.AttributeValue{"stepDown": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"grantId": lab.Str(first.Record().Grant), "by": lab.Str("me"), "at": &types.AttributeValueMemberN{Value: "1"},
		}}})
		lab.Elapse(time.Minute)
		lab.Want(t, "requests to the current leader", len(causes), 0)
		_ = stop()
	})
}

func TestStepDownRetriesUnansweredRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		operator, _, asking := elects(w, lab.Config())
		term := campaign(w, e, "")
		asked := 0
		_ = e.OnStepDown(term, func() { asked++; w.Release(term) })
		lost := 0
		asking.SetFault(lab.On(isUpdate, func(r *lab.Request) (*http.Response, error) {
			if lost++; lost > 3 {
				return r.Send()
			}
			return lab.LoseReply(r)
		}))
		lab.WantErr(t, "step down", operator.StepDown(t.Context()), nil)
		lab.Want(t, "times asked", asked, 1)
		term = campaign(w, e, "")
		asking.SetFault(lab.On(isUpdate, lab.Drop))
		lab.WantErr(t, "step down without a reply", operator.StepDown(w.Within(3*time.Second)), leasehold.ErrUnknownOutcome, context.DeadlineExceeded)
		asking.SetFault(lab.On(isUpdate, lab.Refused("AccessDeniedException")))
		var op *leasehold.OpError
		if err := operator.StepDown(t.Context()); !errors.As(err, &op) || op.Op != "step down" {
			t.Errorf("denied step down: %v", err)
		}
		w.Release(term)
	})
}

func TestStepDownFailsIfLeaderCannotReceiveRequest(t *testing.T) {
	for _, l := range []layout.Layout{layout.AWSLabs{}, layout.DynamoDLM{}} {
		lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
			e, _, wire := elects(w, cfg)
			lab.WantErr(t, "step down", e.StepDown(t.Context()), errors.ErrUnsupported)
			lab.Want(t, "requests", len(wire.Sent()), 0)
		})
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		shared, c, _ := elects(w, lab.SharedConfig())
		operator, o, _ := elects(w, lab.Config())
		campaign(w, shared, "")
		lab.WantErr(t, "leader under a shared lease", operator.StepDown(t.Context()), errors.ErrUnsupported)
		_ = c.Close(t.Context())
		w.Put(map[string]types.AttributeValue{"key": lab.Str(seat), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("20000"), "recordVersionNumber": lab.Str("v1")})
		lab.WantErr(t, "leader of another library", operator.StepDown(t.Context()), errors.ErrUnsupported)
		w.Delete(seat)
		next, _, _ := elects(w, lab.Config())
		w.Release(campaign(w, next, ""))
		campaign(w, next, "")
		lab.OK(t, o.Close(t.Context()))
		lab.WantErr(t, "step down by a closed client", operator.StepDown(t.Context()), leasehold.ErrClosed)
	})
}

// hears fails the test unless a function from works sends ErrAsked to causes within a minute.
func hears(t *testing.T, causes <-chan error) {
	t.Helper()
	select {
	case err := <-causes:
		lab.WantErr(t, "cause of the function's end", err, election.ErrAsked)
	case <-time.After(time.Minute):
		t.Error("the leader was not asked to step down")
	}
}

// A hand-over cannot store the new leader's value. So the new leader replaces the grant of the
// hand-over by a second grant, which stores the value. StepDown must find the second grant, and ask
// again.
func TestStepDownStopsLeaderElectedByHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		e, next, operator := elect(w, cfg), elect(w, cfg), elect(w, cfg)
		term := campaign(w, e, "a")
		causes, stop := leads(t, next, "b", 0)
		lab.Elapse(30 * time.Second)
		w.Release(term)
		lab.OK(t, operator.StepDown(t.Context()))
		hears(t, causes)
		_ = stop()
	})
}

// If StepDown waits long for the leader to resign, it polls rarely. It may then not notice that
// the key was free between two terms of the same leader. Even so, StepDown must not end the
// second term.
func TestStepDownCallDoesNotEndNextTermOfSameLeader(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, _, _ := elects(w, lab.Config())
		cfg := lab.Config()
		cfg.PollMax = 5 * time.Second
		c, _ := w.Client(cfg, lab.Chance(func() float64 { return 0.99 }))
		operator := newElection(w, c)
		causes, stop := leads(t, e, "", 3*time.Minute)
		lab.Elapse(time.Minute)
		asking := w.Within(10 * time.Minute)
		lab.OK(t, operator.StepDown(asking))
		lab.Elapse(10 * time.Minute)
		lab.Want(t, "times that the work ended", len(causes), 1)
		_ = stop()
	})
}

// The terms of this leader end before their first renewal, so that StepDown cannot tell them from
// grants that the leader has replaced.
func TestStepDownReturnsIfTermsOfLeaderAreShort(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, operator := elect(w, lab.Config()), elect(w, lab.Config())
		ctx, cancel := context.WithCancel(t.Context())
		led := lab.Go(func() (err error) {
			for err == nil {
				err = e.Lead(ctx, "", func(context.Context, *leasehold.Lock) error { time.Sleep(time.Second); return nil })
			}
			return err
		})
		lab.Elapse(time.Minute)
		lab.WantErr(t, "step down", operator.StepDown(w.Within(20*time.Second)), nil)
		cancel()
		lab.WantErr(t, "lead", <-led, context.Canceled)
	})
}

func TestStepDownDoesNotStopNextLeaderOfSameClient(t *testing.T) {
	lab.Each(t, map[string]time.Duration{
		"leader has not renewed its term yet": 0,
		"leader has renewed its term":         time.Minute,
	}, func(t *testing.T, w *lab.World, age time.Duration) {
		e, c, _ := elects(w, lab.Config())
		operator, _, _ := elects(w, lab.Config())
		one, stopOne := leads(t, e, "", 0)
		lab.Elapse(age)
		other, stopOther := leads(t, newElection(w, c), "", 0)
		lab.Elapse(age)
		lab.WantErr(t, "step down", operator.StepDown(w.Within(time.Minute)), nil)
		lab.Elapse(time.Minute)
		lab.Want(t, "functions that ended", len(one)+len(other), 1)
		_, _ = stopOne(), stopOther()
		_ = c.Close(t.Context())
	})
}

func TestStepDownStopsLeaderWhoseGrantReplyWasLost(t *testing.T) {
	lab.Each(t, map[string]int{"one reply": 1, "two replies": 2}, func(t *testing.T, w *lab.World, replies int) {
		e, _, wire := elects(w, lab.Config())
		operator, _, asking := elects(w, lab.Config())
		asking.SetFault(lab.On(isUpdate, lab.Slow(time.Second))) // the leader replaces its grants before StepDown reads the record again
		landed := make(chan struct{})
		lost := 0
		wire.SetFault(lab.On(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			if lost++; lost > replies {
				return r.Send()
			}
			if lost == 1 {
				defer close(landed)
			}
			return lab.LoseReply(r)
		}))
		causes, stop := leads(t, e, "", 0)
		<-landed
		lab.OK(t, operator.StepDown(t.Context()))
		hears(t, causes)
		_ = stop()
	})
}

func TestStepDownCallsEveryRegisteredFunction(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, operator := elect(w, lab.Config()), elect(w, lab.Config())
		var heard atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		led := lab.Go(func() error {
			return e.Lead(ctx, "", func(ctx context.Context, term *leasehold.Lock) error {
				for range 2 {
					_ = e.OnStepDown(term, func() { heard.Add(1) })
				}
				<-ctx.Done()
				return nil
			})
		})
		wait := w.Within(time.Minute)
		lab.WantErr(t, "step down", operator.StepDown(wait), nil)
		lab.Want(t, "functions called", heard.Load(), 2)
		cancel()
		<-led
	})
}

// This candidate joins the queue after the leader's last renewal, so the release does not hand it
// the key. It acquires the key within 250 ms. Until then, neither the former leader nor another
// candidate of its client may campaign, whatever their PollMax.
func TestCandidateIsElectedEvenIfItJoinsQueueAfterStepDown(t *testing.T) {
	cfg := lab.Config()
	cfg.PollMax = 50 * time.Millisecond
	candidates := map[string]bool{"one candidate of the leader's client": false, "two candidates of the leader's client": true}
	// Each round releases the term at a different time between two reads of the waiter.
	for ends := 2 * time.Second; ends < 2250*time.Millisecond; ends += 20 * time.Millisecond {
		lab.Each(t, candidates, func(t *testing.T, w *lab.World, two bool) {
			e, c, _ := elects(w, cfg)
			other, operator := elect(w, cfg), elect(w, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			heard := make(chan struct{}, 9)
			led := lab.Go(func() error {
				return e.Lead(ctx, "a", func(ctx context.Context, _ *leasehold.Lock) error {
					<-ctx.Done()
					heard <- struct{}{}
					time.Sleep(ends)
					return ctx.Err()
				})
			})
			if two {
				_, stopSecond := leads(t, newElection(w, c), "a", 0)
				defer func() { _, _ = stopSecond(), c.Close(t.Context()) }()
			}
			lab.Elapse(time.Minute)
			asked := lab.Go(func() error { return operator.StepDown(t.Context()) })
			<-heard
			lab.Elapse(time.Second)
			_, stop := leads(t, other, "b", 0)
			lab.Elapse(3 * time.Second)
			if now, err := operator.Leader(t.Context()); err != nil || now.Value != "b" {
				t.Errorf("after %v %+v leads, %v", ends, now, err)
			}
			lab.OK(t, <-asked)
			cancel()
			<-led
			_ = stop()
		})
	}
}

func TestOnStepDownRejectsInvalidArguments(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		e, c, _ := elects(w, lab.Config())
		other, _, _ := elects(w, lab.Config())
		term := campaign(w, e, "")
		lock := w.Acquire(c, "job")
		fn := func() {}
		lab.WantErr(t, "a term", e.OnStepDown(term, fn), nil)
		for name, err := range map[string]error{
			"lock of another key":      e.OnStepDown(lock, fn),
			"term of another election": other.OnStepDown(term, fn),
			"nil Lock":                 e.OnStepDown(nil, fn),
			"zero Lock":                e.OnStepDown(&leasehold.Lock{}, fn),
			"nil function":             e.OnStepDown(term, nil),
		} {
			lab.WantFailed(t, name, err)
		}
		w.Release(lock)
		w.Release(term)
	})
}
