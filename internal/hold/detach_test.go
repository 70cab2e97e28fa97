package hold_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestResumeSucceedsAfter200UnansweredResumes(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"no network":            lab.Drop,
		"attempts not received": lab.On(isUpdate, lab.Drop),
		"attempts applied":      lab.On(isUpdate, lab.LoseReply),
	}, func(t *testing.T, w *lab.World, unanswered lab.Fault) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c, wire := w.Client(cfg)
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(unanswered)
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			began := time.Now()
			if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) || time.Since(began) > 2*time.Second {
				t.Fatalf("resume without a reply: %v after %v", err, time.Since(began))
			}
			cancel()
		}
		wire.SetFault(nil)
		lab.Elapse(20 * time.Minute) // longer than the client remembers an attempt to acquire a key
		w.Release(w.Resume(c, g))
	})
}

func TestResumeSucceedsDespiteLostReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		over := time.Now().Add(30 * time.Second) // the throttling ends only after the lease has ended
		wire.SetFault(lab.Once(lab.Call.Renews, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if time.Now().Before(over) {
					return lab.Refusal(400, "ThrottlingException"), nil
				}
				return r.Send()
			})
			return lab.LoseReply(r)
		}))
		w.Release(w.Resume(c, g))
	})
}

func TestOnlyOneOfConcurrentResumesSucceeds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second))) // the renewal is applied at once, but its reply takes two seconds
		resume := func() error { return lab.ErrorOf(c.Resume(t.Context(), g)) }
		first := lab.Go(resume)
		lab.Elapse(time.Second)
		second := lab.Go(resume)
		lab.WantErr(t, "first resume", <-first, nil)
		lab.WantErr(t, "second resume", <-second, leasehold.ErrLost)
		lab.Want(t, "locks held", len(c.Held()), 1)
		_ = c.Close(t.Context())
	})
}

func TestCloseDuringResumeDoesNotReleaseKey(t *testing.T) {
	lab.Each(t, map[string]time.Duration{
		"caller waits": time.Hour, "caller has left": 500 * time.Millisecond,
	}, func(t *testing.T, w *lab.World, leaves time.Duration) {
		c, wire := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second)))
		ctx := w.Within(leaves)
		ended := lab.Go(func() error { return lab.ErrorOf(c.Resume(ctx, g)) })
		lab.Elapse(time.Second)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		if err := <-ended; !errors.Is(err, leasehold.ErrClosed) && !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("resume: %v", err)
		}
		lab.WantErr(t, "other client, while the grant lasts", lab.ErrorOf(other.TryAcquire(t.Context(), "deploy")), leasehold.ErrHeld)
		// The closed client no longer renews the grant.
		lab.WantErr(t, "other client, later", lab.ErrorOf(other.Acquire(w.Within(time.Minute), "deploy")), nil)
	})
}

// Resume gets the reply to its request, and then logs a warning that the client holds many locks.
// This test's log handler blocks that warning until Close has begun. When Resume continues, it
// finds that the client is closing.
func TestResumeDoesNotReleaseKeyIfClientIsClosedAfterReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		wire, closing := w.Wire(), make(chan struct{})
		cfg := lab.Config()
		cfg.Logger = slog.New(holdUp{slog.DiscardHandler, closing})
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = noPool{wire} }), cfg)
		g := w.Detach(w.Acquire(c, "deploy"))
		for i := range 9 {
			w.Acquire(c, fmt.Sprint("other ", i), leasehold.WithoutRenewal())
		}
		resumed := lab.Go(func() error { return lab.ErrorOf(c.Resume(t.Context(), g)) })
		lab.Want(t, "results of Resume before Close began", len(resumed), 0)
		closed := lab.Go(func() error { return c.Close(t.Context()) })
		close(closing)
		lab.WantErr(t, "resume", <-resumed, leasehold.ErrClosed)
		lab.WantErr(t, "close", <-closed, nil)
		other, _ := w.Client(lab.Config())
		lab.WantErr(t, "other client, while the grant lasts", lab.ErrorOf(other.TryAcquire(t.Context(), "deploy")), leasehold.ErrHeld)
		// The closed client no longer renews the grant.
		lab.WantErr(t, "other client, later", lab.ErrorOf(other.Acquire(w.Within(time.Minute), "deploy")), nil)
	})
}

func TestWaiterSendsNoRequestWhileItsClientHoldsKeyAfterResume(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(a, "deploy"))
		lock := w.Resume(a, g)
		next := w.Queue(a, "deploy")
		wire.Sent()
		lab.Elapse(4 * time.Second)
		sent := wire.Sent()
		lab.Want(t, "renewals among the requests", lab.Count(sent, lab.Call.Renews), len(sent))
		w.Release(lock)
		w.Release(<-next)
	})
}

func TestReleaseOfResumedLockWakesOnlyOneGoroutine(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		granted := make(chan *leasehold.Lock, 2)
		for range 2 {
			go func() { granted <- w.Acquire(c, "deploy") }()
			synctest.Wait()
		}
		w.Release(w.Resume(c, g))
		first := <-granted
		wire.Sent()
		lab.Elapse(4 * time.Second)
		sent := wire.Sent()
		lab.Want(t, "renewals among the requests", lab.Count(sent, lab.Call.Renews), len(sent))
		w.Release(first)
		w.Release(<-granted)
	})
}

func TestGrantCanBeResumedAgainIfOutcomeOfFirstResumeIsUnknown(t *testing.T) {
	type row struct {
		fault  lab.Fault
		leaves time.Duration // timeout of the first Resume
		later  time.Duration // pause before the second Resume
	}
	lab.Each(t, map[string]row{
		"reply lost":      {lab.LoseReply, time.Nanosecond, 2 * time.Second},
		"reply late":      {lab.Slow(time.Second), time.Nanosecond, 2 * time.Second},
		"reply in flight": {lab.Slow(2 * time.Second), time.Second, 0},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, tc.fault))
		lab.WantErr(t, "resume", lab.ErrorOf(c.Resume(w.Within(tc.leaves), g)), leasehold.ErrUnknownOutcome)
		lab.Elapse(tc.later)
		lab.Want(t, "locks held", len(c.Held()), 0)
		w.Release(w.Resume(c, g))
	})
}

// The first goroutine begins to wait before the lock is resumed, so it polls the record. The second
// waits behind it. The release hands the key to neither, because the record's queue is suspended.
// The first then sends a grant, and is cancelled before the reply.
func TestSecondWaiterForResumedLockAcquiresKeyIfFirstIsCancelled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "job"))
		w.Suspend("job", time.Minute)
		ctx, leave := context.WithCancel(t.Context())
		seeker := lab.Go(func() error { return lab.ErrorOf(c.Acquire(ctx, "job")) })
		time.Sleep(30 * time.Millisecond)
		lock := w.Resume(c, g)
		granted := w.Queue(c, "job")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		released := lab.Go(func() error { return lock.Release(t.Context()) })
		time.Sleep(500 * time.Millisecond)
		leave()
		<-seeker
		lab.WantErr(t, "release", <-released, nil)
		w.Release(<-granted)
	})
}

func TestResumeOutcomeStaysUnknownIfSecondResumeIsThrottled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		resume := func() error { return lab.ErrorOf(c.Resume(w.Within(5*time.Second), g)) }
		wire.SetFault(lab.Drop)
		lab.WantErr(t, "resume without a reply", resume(), leasehold.ErrUnknownOutcome)
		wire.SetFault(lab.Refused("ThrottlingException"))
		lab.WantErr(t, "throttled resume", resume(), leasehold.ErrUnknownOutcome)
	})
}

func TestErrorOfRejectedResumeStatesWhyLockWasLost(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		for name, tc := range map[string]struct {
			meanwhile func(w *lab.World, other *leasehold.Client, g leasehold.Grant)
			want      leasehold.LostReason
		}{
			"resumed elsewhere": {func(w *lab.World, other *leasehold.Client, g leasehold.Grant) { w.Resume(other, g) }, leasehold.LostReplaced},
			"resumed and released elsewhere": {func(w *lab.World, other *leasehold.Client, g leasehold.Grant) {
				w.Release(w.Resume(other, g))
			}, leasehold.LostBroken},
			"granted again": {func(w *lab.World, other *leasehold.Client, g leasehold.Grant) {
				w.Release(w.Resume(other, g))
				w.Acquire(other, "deploy")
			}, leasehold.LostReplaced},
		} {
			t.Run(l.Name()+", "+name, func(t *testing.T) {
				lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
					c, _ := w.Client(cfg)
					other, _ := w.Client(cfg)
					g := w.Detach(w.Acquire(c, "deploy"))
					tc.meanwhile(w, other, g)
					lost := lostIn(lab.ErrorOf(c.Resume(t.Context(), g)))
					lab.Want(t, "reason", lost.Reason, tc.want)
					lab.Want(t, "time of the loss is in the future", lost.At.After(time.Now()), false)
				})
			})
		}
	}
}

func TestResumeSucceedsAfterDamageToRecordIsRepaired(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Holding(lab.Config())
		g := w.Detach(lock)
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		lab.WantAs[*leasehold.RecordError](t, "resume", lab.ErrorOf(c.Resume(t.Context(), g)))
		w.Update("job", map[string]types.AttributeValue{"data": &types.AttributeValueMemberB{Value: []byte("data")}})
		w.Release(w.Resume(c, g))
	})
}
