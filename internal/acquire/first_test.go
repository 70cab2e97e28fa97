package acquire_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestWaiterReadsRecordBeforeRetryingGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		var draws atomic.Int64
		c, wire := w.Client(lab.Config(), lab.Chance(func() float64 {
			if draws.Add(1) < 5 {
				return 0
			}
			return 0.5
		}))
		granted := w.Queue(c, "job")
		lab.Elapse(time.Second)
		w.Release(lock)
		next := <-granted
		// The three writes are a rejected grant, a join of the queue, and the successful grant.
		lab.Want(t, "writes", lab.Count(wire.Sent(), func(c lab.Call) bool { return !c.Reads() }), 3)
		w.Release(next)
	})
}

func TestRetryBackoffRestartsAfterReplyFromDynamoDB(t *testing.T) {
	cases := map[string]string{"grants have failed": "UpdateItem", "reads have failed": "GetItem"}
	lab.Each(t, cases, func(t *testing.T, w *lab.World, fails string) {
		_, _, lock := w.Holding(lab.Config())
		c, wire := w.Client(lab.Config(), lab.Chance(func() float64 { return 0.9 })) // long pauses
		n := 0
		var failed, repeated time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case r.Op == fails && n < 9:
				if n++; n < 9 {
					return lab.Throttled(r)
				}
			case r.Op == "GetItem" && n == 9 && failed.IsZero():
				failed = time.Now()
				return lab.Drop(r)
			case !failed.IsZero() && repeated.IsZero():
				repeated = time.Now()
			}
			return r.Send()
		})
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(30*time.Second), "job")), leasehold.ErrHeld)
		lab.OK(t, c.Close(t.Context()))
		lab.WantRange(t, "pause after a read that failed first", repeated.Sub(failed), time.Millisecond, 500*time.Millisecond)
		w.Release(lock)
	})
}

func TestTryAcquireReturnsErrHeldEvenAfter10SecondsWithoutReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		c, wire := w.Client(lab.Config(), lab.Chance(func() float64 { return 0.5 }))
		began := time.Now()
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if time.Since(began) < 9*time.Second {
				return lab.Drop(r)
			}
			return lab.Slow(2 * time.Second)(r)
		})
		lab.WantErr(t, "TryAcquire", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		lab.WantTook(t, "refused after", began, 10*time.Second, 14*time.Second)
		w.Release(lock)
	})
}

func TestAcquireSucceedsIfDynamoDBReceivesGrantTwice(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		// DynamoDB applies the first copy of the request. The client receives only the reply to the
		// second copy, whose condition has failed.
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return r.Send()
		}))
		began := time.Now()
		lock := w.Acquire(c, "job")
		lab.Want(t, "requests", len(wire.Sent()), 1)
		lab.Want(t, "trust", lock.TrustedUntil().Sub(began), 18*time.Second)
		w.Release(lock)
	})
}

func TestAcquireReplacesGrantIfReplyIsDelayedByHalfOfLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			time.Sleep(time.Second) // more than half of the time for which the grant is trusted
			return r.Send()
		}))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(2*time.Second))
		lab.Want(t, "trust", lock.TrustedUntil().Sub(began), 2800*time.Millisecond)
		w.Release(lock)
	})
}

func TestCancelledAcquireReleasesKeyIfGrantRequestHadNoReply(t *testing.T) {
	cases := map[string]int{"first attempt applied": 1, "second attempt applied": 2}
	lab.Each(t, cases, func(t *testing.T, w *lab.World, applied int) {
		c, wire := w.Client(lab.SharedConfig())
		other := w.Acquire(c, "other") // begins the session
		ctx, leave := context.WithCancel(t.Context())
		n := 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if n++; n > 2 { // the requests after the second one try to free the key, and each is answered
				return r.Send()
			}
			if n == applied {
				_, _ = r.Send()
			}
			if n == 2 {
				leave()
				time.Sleep(time.Millisecond)
			}
			return nil, lab.ErrReset
		})
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(ctx, "job")), context.Canceled)
		lab.Elapse(time.Second)
		lab.Want(t, "held", w.HeldAmong(leasehold.Keys("job")), nil)
		w.Release(other)
		lab.OK(t, c.Close(t.Context()))
	})
}

// leaving is a context that ends when its method Done is called. From then on, Err calls onErr and
// then returns context.Canceled.
type leaving struct {
	context.Context
	onErr func()
	ended atomic.Bool
}

func (l *leaving) Done() <-chan struct{} {
	l.ended.Store(true)
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (l *leaving) Err() error {
	if !l.ended.Load() {
		return nil
	}
	l.onErr()
	return context.Canceled
}

func TestKeyIsFreeIfAcquireIsCancelledWhileHolderReleasesKey(t *testing.T) {
	cases := map[string]leasehold.AcquireOption{"key handed over": leasehold.WithoutRenewal(), "turn passed": leasehold.Once("done")}
	lab.Each(t, cases, func(t *testing.T, w *lab.World, opt leasehold.AcquireOption) {
		c, _, lock := w.Holding(lab.Config())
		ctx := &leaving{Context: context.WithoutCancel(t.Context()), onErr: func() { _ = lock.Release(t.Context()) }}
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(ctx, "job", opt)), context.Canceled)
		w.WantReleased("job")
		w.Release(lab.Must(c.Acquire(w.Within(time.Second), "job"))(t))
	})
}

// The tests below call AcquireAny, which acquires one of several keys.

// leftAfterASecond makes another client acquire the keys "a" and "b", and release "a" after a
// second. It returns the lock of "b".
func leftAfterASecond(w *lab.World) *leasehold.Lock {
	other, _ := w.Client(lab.Config())
	a, b := w.Acquire(other, "a"), w.Acquire(other, "b")
	time.AfterFunc(time.Second, func() { _ = a.Release(w.T.Context()) })
	return b
}

func TestAcquireAnyReturnsLockIfCancelledAfterGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := leftAfterASecond(w)
		c, wire := w.Client(lab.Config())
		ctx, leave := context.WithCancel(t.Context())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Op == "UpdateItem" && c.Stats().Held > 0 { // the call has been granted one key, so this write leaves the queue of the other key
				leave()
				time.Sleep(time.Second)
			}
			return r.Send()
		})
		lock, err := c.AcquireAny(ctx, leasehold.Keys("a", "b"), leasehold.WithoutRenewal())
		lab.OK(t, err)
		lab.WantErr(t, "context", ctx.Err(), context.Canceled)
		w.Release(lock)
		w.Release(b)
	})
}

func TestAcquireAnyIsNotBlockedByUnansweredRead(t *testing.T) {
	lab.Each(t, map[string][]string{"session's key first": {"a", "b"}, "session's key last": {"b", "a"}}, func(t *testing.T, w *lab.World, keys []string) {
		shared, _ := w.Client(lab.SharedConfig())
		session := w.Acquire(shared, "a")
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(isGet, lab.Late(time.Second, lab.Drop)))
		granted := acquireAny(t, c, keys...)
		lab.Elapse(2 * time.Second)
		w.Release(b)
		began := time.Now()
		lock := <-granted
		lab.WantTook(t, "the key that was freed is granted after", began, 0, 3*time.Second)
		w.Release(lock)
		w.Release(session)
	})
}

func TestWaiterAcquiresReleasedKeyThoughSessionRowIsUnreadable(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"access denied": lab.Refused("AccessDeniedException"),
		"no answer":     lab.Cut,
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		holder, _ := w.Client(lab.SharedConfig())
		held := w.Acquire(holder, "a")
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(readsSession, fault))
		granted := lab.Go(func() error { return lab.ErrorOf(c.Acquire(w.Within(time.Minute), "a")) })
		lab.Elapse(10 * time.Second)
		released := time.Now()
		w.Release(held)
		var rejected atomic.Int64 // another client may acquire and release the key before each grant
		wire.SetFault(lab.On(func(c lab.Call) bool {
			return c.Grants() && time.Since(released) < time.Second && rejected.Add(1) < 100
		}, lab.Refused("ConditionalCheckFailedException")))
		lab.WantErr(t, "Acquire", <-granted, nil)
		lab.WantTook(t, "time from release to grant", released, 0, 4*time.Second)
		lab.WantRange(t, "rejected grants", rejected.Load(), 0, 50)
		_ = c.Close(t.Context())
	})
}

func TestOptionIfExistsMakesAcquireAnySkipMissingRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		cfg := lab.Config()
		events := lab.Events(&cfg, leasehold.EventWaitError)
		c, _ := w.Client(cfg)
		_, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait(), leasehold.IfExists())
		if held := (*leasehold.HeldError)(nil); !errors.As(err, &held) || held.Key.Partition != "b" || held.Err != nil || len(events()) > 0 {
			t.Errorf("%v; events %v", err, events())
		}
		w.Release(b)
	})
}

func TestErrorOfAcquireAnyWrapsRecordErrorOfDamagedKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Put(lab.Key("a"))
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		c, _ := w.Client(lab.Config())
		_, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
		lab.WantErr(t, "AcquireAny", err, leasehold.ErrHeld)
		lab.WantAs[*leasehold.RecordError](t, "AcquireAny", err)
		w.Release(b)
	})
}

func TestAcquireAnyEmitsOnlyOneEventForDamagedSessionRow(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		w.Acquire(holder, "a")
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		cfg := lab.Config()
		events := lab.Events(&cfg, leasehold.EventWaitError)
		c, _ := w.Client(cfg)
		// The record of the key "a" does not change for a whole lease. Only the session's row shows
		// that the holder of this key is alive.
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(21*time.Second), "a")), context.DeadlineExceeded)
		wire.SetFault(lab.Cut)
		w.Update(w.Sessions()[0], item{"leaseDuration": nil})
		_, err := c.AcquireAny(w.Within(2*time.Second), leasehold.Keys("a", "b"))
		lab.WantErr(t, "AcquireAny", err, context.DeadlineExceeded)
		lab.Want(t, "reports", len(events()), 1)
		w.Release(b)
		_ = holder.Close(t.Context())
	})
}

func TestHeldErrorOfAcquireAnyContainsKeyEvenIfBatchReadFails(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		held := w.AcquireAll(other, leasehold.Keys("a", "b"))
		c, wire := w.Client(lab.Config(), lab.Chance(func() float64 { return 0.5 }))
		n, batches := 0, 0
		// The second request is the grant of b. If it fails, AcquireAny sends it again only after a
		// batch read of both keys.
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if n++; r.Op == "BatchGetItem" {
				batches++
			}
			if n == 2 || r.Op == "BatchGetItem" {
				return lab.Throttled(r)
			}
			return r.Send()
		})
		_, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
		if is := (*leasehold.HeldError)(nil); !errors.As(err, &is) || is.Key.Partition != "a" || batches == 0 {
			t.Errorf("after %d batch reads: %v", batches, err)
		}
		w.Release(held)
	})
}

func TestBatchReadCountsAsOneRequestInEventsOfAcquireAny(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		b := leftAfterASecond(w)
		cfg := lab.Config()
		events := lab.Events(&cfg, leasehold.EventGranted, leasehold.EventThrottled)
		c, wire := w.Client(cfg)
		isBatch := func(c lab.Call) bool { return c.Op == "BatchGetItem" }
		wire.SetFault(lab.Once(isBatch, lab.Throttled))
		lock := <-acquireAny(t, c, "a", "b")
		synctest.Wait()
		sent, told := wire.Sent(), events()
		if len(told) != 2 || told[0].Kind != leasehold.EventThrottled || told[0].Requests != 1 {
			t.Fatalf("events %+v", told)
		}
		// The event does not count the last request. The call leaves the queue of "b" by this
		// request.
		lab.Want(t, "requests", told[1].Requests, len(sent)-1)
		if lab.Count(sent, isBatch) < 2 {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		w.Release(lock)
		w.Release(b)
	})
}

func TestAcquireAnyDoesNotReadLocallyHeldKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		a := w.Acquire(other, "a")
		c, wire := w.Client(lab.Config())
		b := w.Acquire(c, "b")
		granted := acquireAny(t, c, "a", "b")
		lab.Elapse(time.Second)
		if ops := lab.Ops(wire.Sent()); slices.Contains(ops, "BatchGetItem") || !slices.Contains(ops, "GetItem") {
			t.Errorf("sent %v", ops)
		}
		w.Release(b)
		w.Release(<-granted)
		w.Release(a)
	})
}

func TestAcquireFailsOnDamagedRecordButAcquireAnySkipsIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Put(lab.Key("a"))
		other, _ := w.Client(lab.Config())
		b := w.Acquire(other, "b")
		c, _ := w.Client(lab.Config())
		granted := acquireAny(t, c, "a", "b")
		lab.WantAs[*leasehold.RecordError](t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(time.Second), "a")))
		w.Release(b)
		w.Release(<-granted)
	})
}

// Under a shared lease, a grant that nobody uses would block the key for as long as the call waits
// for its other key.
func TestAcquireAnyFreesKeyAtOnceIfGrantShowsDamagedRecord(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		other, _ := w.Client(lab.Config())
		w.Release(w.Acquire(other, "a"))
		w.Update("a", map[string]types.AttributeValue{"data": lab.Str("text")})
		b := w.Acquire(other, "b")
		c, _ := w.Client(cfg)
		granted := acquireAny(t, c, "a", "b")
		lab.Elapse(time.Second)
		w.WantReleased("a")
		w.Release(b)
		w.Release(<-granted)
	})
}

func TestAcquireAnyLeavesQueueAtOnceIfRecordIsDamaged(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		a, b := w.Acquire(other, "a"), w.Acquire(other, "b")
		c, _ := w.Client(lab.Config())
		granted := acquireAny(t, c, "a", "b")
		lab.Elapse(time.Second)
		w.Update("a", map[string]types.AttributeValue{"data": lab.Str("text")})
		lab.Elapse(time.Second)
		w.Update("a", map[string]types.AttributeValue{"data": nil}) // an operator repairs the record
		lab.OK(t, a.Renew(t.Context()))                             // the reply shows the queue to the holder
		w.Release(a)
		w.WantReleased("a")
		w.Release(b)
		w.Release(<-granted)
	})
}

// The tests below are about requests that fail while a call waits.

func TestRequestFailureAfterAcquireTimedOutEmitsNoEvent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		events := lab.Events(&cfg, leasehold.EventWaitError)
		c, wire := w.Client(cfg)
		wire.SetFault(lab.Cut)
		lab.WantFailed(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(time.Second), "job")))
		lab.Elapse(time.Minute) // the grant in flight has failed meanwhile
		lab.Want(t, "reports", len(events()), 0)
	})
}

func TestEventWaitErrorIsNotEmittedForThrottlingOf50Seconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.Config())
		cfg := lab.Config()
		events := lab.Events(&cfg, leasehold.EventWaitError)
		c, wire := w.Client(cfg)
		began, n := time.Now(), 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			after := time.Since(began)
			if n++; n > 1 && (after < 50*time.Second || after > 55*time.Second) {
				return lab.Throttled(r)
			}
			return r.Send()
		})
		lab.WantErr(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(90*time.Second), "job")), context.DeadlineExceeded)
		lab.Want(t, "reports", len(events()), 0)
		lab.OK(t, c.Close(t.Context()))
		w.Release(lock)
	})
}

func TestWaiterUsesStronglyConsistentReads(t *testing.T) {
	lab.Each(t, map[string][]string{"GetItem": {"a"}, "BatchGetItem": {"a", "b"}}, func(t *testing.T, w *lab.World, keys []string) {
		other, _ := w.Client(lab.Config())
		held := w.AcquireAll(other, leasehold.Keys(keys...))
		c, wire := w.Client(lab.Config())
		granted := acquireAny(t, c, keys...)
		lab.Elapse(time.Second)
		for _, sent := range wire.Sent() {
			if sent.Reads() && !strings.Contains(string(sent.Body), `"ConsistentRead":true`) {
				t.Errorf("%s %s", sent.Op, sent.Body)
			}
		}
		w.Release(held)
		w.Release(<-granted)
	})
}
