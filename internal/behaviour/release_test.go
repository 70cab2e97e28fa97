package behaviour_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestUnansweredReleaseCanBeRepeated(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.SetFault(lab.Cut)
		ctx := w.Ended()
		began := time.Now()
		lab.WantErr(t, "Release", lock.Release(ctx), leasehold.ErrUnknownOutcome)
		lab.WantTook(t, "took", began, 2*time.Second, 2*time.Second)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		lab.WantErr(t, "repeated", lock.Release(t.Context()), nil)
		w.WantReleased("job")
	})
}

func TestHandleOfExpiredGrantDoesNotChangeNextGrantOfKey(t *testing.T) { // in dynamolock and awslabs, the old handle stops the heartbeats of the newer grant
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, stale *leasehold.Lock) {
		wire.SetFault(lab.Cut)
		lab.Elapse(30 * time.Second)
		wire.SetFault(nil)
		lock := w.Acquire(c, "job")
		lab.WantErr(t, "stale release", stale.Release(t.Context()), leasehold.ErrLost)
		lab.WantErr(t, "stale renewal", stale.Renew(t.Context()), leasehold.ErrLost)
		lab.Elapse(2 * time.Minute)
		lab.WantErr(t, "the later grant", lock.Err(), nil)
		w.Release(lock)
	})
}

func TestReleaseIsNotRepeatedAfterLeaseHasExpired(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.SetFault(lab.Cut)
		began := time.Now()
		lab.WantErr(t, "Release", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		lab.WantTook(t, "took", began, 18*time.Second, 25*time.Second)
		wire.SetFault(nil)
		if next, err := c.TryAcquire(t.Context(), "job"); err != nil {
			t.Errorf("TryAcquire after the lease has ended: %v", err)
		} else {
			w.Release(next)
		}
	})
}

func TestReleaseOfExpiredLockSendsOnlyOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		lock := w.Acquire(c, "job")
		// The clock jumps past the end of the lease. No method of the lock reads the clock before
		// Release, so only Release can notice that the lease has expired.
		k.Boot.Store(int64(time.Hour))
		wire.SetFault(lab.Cut)
		wire.Sent()
		lab.WantErr(t, "Release", lock.Release(t.Context()), leasehold.ErrLost)
		wantSent(t, wire, 1)
	})
}

func TestDoReturnsErrLostIfRecordHasChanged(t *testing.T) {
	for name, happens := range map[string]func(w *lab.World){
		"replaced": func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x")})
		},
		"broken": func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
		},
		"deleted": func(w *lab.World) { w.Delete("job") },
		"damaged": func(w *lab.World) { w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": nil}) },
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a waiter: %v", name, waits), func(t *testing.T) {
				oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
					ctx := w.Within(time.Second)
					err := c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error {
						if waits {
							go func() {
								if l, err := c.Acquire(ctx, "job"); err == nil {
									_ = l.Release(t.Context())
								}
							}()
							synctest.Wait()
						}
						happens(w)
						return nil
					})
					lab.WantErr(t, "Do", err, leasehold.ErrLost)
					lab.Elapse(10 * time.Second)
				})
			})
		}
	}
}

func TestReleaseHandsOverKeyToWaitingGoroutineInOneRequest(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		var mu sync.Mutex
		var order []int
		var tokens []int64
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				l := w.Acquire(c, "job")
				mu.Lock()
				order, tokens = append(order, i), append(tokens, l.Token())
				mu.Unlock()
				time.Sleep(time.Second)
				w.Release(l)
			})
			synctest.Wait()
		}
		wire.Sent()
		lab.Elapse(time.Minute) // goroutines of the holder's client wait in memory and send no requests
		sent := wire.Sent()
		wantCount(t, "renewals among the requests", sent, lab.Call.Renews, len(sent))
		w.Release(lock)
		wg.Wait()
		lab.Want(t, "order", order, []int{0, 1, 2, 3, 4})
		lab.Want(t, "last token", tokens[4], lock.Token()+5)
		wantSent(t, wire, 6) // five hand-overs from goroutine to goroutine, and the last release
	})
}

func TestReleaseFreesKeyIfHandOverToGoroutineIsRefused(t *testing.T) {
	emptySet := leasehold.WithAttributes(map[string]types.AttributeValue{"set": &types.AttributeValueMemberSS{}}) // DynamoDB refuses to store it
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _, lock := w.Holding(cfg)
		refused := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job", emptySet)) })
		synctest.Wait()
		next := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		synctest.Wait()
		began := time.Now()
		lab.OK(t, lock.Release(t.Context()))
		lab.WantText(t, "goroutine with an empty set", <-refused, "ValidationException")
		lab.OK(t, <-next)
		lab.WantTook(t, "grant to the next goroutine", began, 0, 0)
		_ = c.Close(t.Context())
	})
}

func TestKeyBecomesFreeIfReleaseWithAttributesIsRefused(t *testing.T) {
	emptySet := leasehold.WithAttributes(map[string]types.AttributeValue{"set": &types.AttributeValueMemberSS{}}) // DynamoDB refuses to store it
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _, lock := w.Holding(cfg)
		lab.WantText(t, "release", lock.Release(t.Context(), emptySet), "ValidationException")
		other, _ := w.Client(lab.Config())
		w.Release(lab.Must(other.Acquire(w.Within(time.Minute), "job"))(t))
		_ = c.Close(t.Context())
	})
}

func TestHolderStopsTrustingLockBeforeReleaseIsSent(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, _ *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() && lock.Err() == nil {
				t.Error("the release was sent before trust had ended")
			}
			return r.Send()
		})
		w.Release(lock)
	})
}

// panicOf returns the value that a function panics with, or nil if the function returns normally.
func panicOf(fn func()) (value any) {
	defer func() { value = recover() }()
	fn()
	return nil
}

func TestPanicInOnEventCallbackReleasesLock(t *testing.T) {
	type row struct {
		kind    leasehold.EventKind
		acquire func(context.Context, *leasehold.Client) error
	}
	acquire := func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "job")) }
	// No case waits for several keys: such a wait calls OnEvent on another goroutine, where a panic
	// would crash the process.
	lab.Each(t, map[string]row{
		"Acquire":            {leasehold.EventGranted, acquire},
		"Acquire that waits": {leasehold.EventWaiting, acquire},
		"AcquireAll": {leasehold.EventGranted, func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("job", "other")))
		}},
		"AcquireAny": {leasehold.EventGranted, func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("job", "other")))
		}},
	}, func(t *testing.T, w *lab.World, tc row) {
		var panics atomic.Bool
		cfg := lab.Config()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == tc.kind && panics.Load() {
				panic("on event")
			}
		}
		c, _ := w.Client(cfg)
		var held *leasehold.Lock
		if tc.kind == leasehold.EventWaiting {
			held = w.Acquire(c, "job")
		}
		panics.Store(true)
		lab.Want(t, "panic", panicOf(func() { _ = tc.acquire(t.Context(), c) }), "on event")
		panics.Store(false)
		if held != nil {
			w.Release(held)
		}
		lab.Elapse(time.Second)
		lab.Want(t, "locks held", len(c.Held()), 0)
		w.Release(w.Acquire(c, "job", leasehold.NoWait()))
		closes(w, c)
	})
}

func TestPanicDuringWorkReachesCallerWithinTwoSeconds(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, *leasehold.Client, func()) error{
		"Client.Do": func(ctx context.Context, c *leasehold.Client, work func()) error {
			return c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { work(); return nil })
		},
		"Group.Do": func(ctx context.Context, c *leasehold.Client, work func()) error {
			g, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
			if err != nil {
				return err
			}
			return g.Do(ctx, func(context.Context, *leasehold.Group) error { work(); return nil })
		},
	}, func(t *testing.T, w *lab.World, do func(context.Context, *leasehold.Client, func()) error) {
		c, wire := w.Client(lab.Config())
		var panicked time.Time
		p := panicOf(func() {
			_ = do(t.Context(), c, func() {
				wire.SetFault(lab.Cut)
				panicked = time.Now()
				panic("work")
			})
		})
		// The panic continues once the release is answered, or after Config.ReleaseGrace.
		lab.WantTook(t, "panic continued after", panicked, 0, 2*time.Second)
		lab.Want(t, "panic", p, "work")
		lab.Elapse(5 * time.Second)
	})
}

func TestPanicDuringWorkReleasesLock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		p := panicOf(func() {
			_ = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { panic("work") })
		})
		lab.Want(t, "panic", p, "work")
		w.WantReleased("job")
	})
}
