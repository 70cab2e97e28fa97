package leasehold_test

import (
	"context"
	"errors"
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

func TestAReleaseWithoutAnAnswerIsUnknownAndMayBeRepeated(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v with an ended context", took)
		}
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("repeated: %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("record %v", w.Item("job"))
		}
	})
}

func TestALockThatExpiredIsStillFreedByItsRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Hour)
		wire.SetFault(nil)
		wire.Sent()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if n := len(wire.Sent()); n != 1 || lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("%d requests, record %v", n, w.Item("job"))
		}
	})
}

func TestAStaleHandleTouchesNoLaterGrant(t *testing.T) { // dynamolock, awslabs: it stops the newer grant's heartbeats
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		stale := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		lab.Elapse(30 * time.Second)
		wire.SetFault(nil)
		lock := w.Acquire(c, "job")
		if err := stale.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("stale release: %v", err)
		}
		if err := stale.Renew(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("stale renewal: %v", err)
		}
		lab.Elapse(2 * time.Minute)
		if err := lock.Err(); err != nil {
			t.Errorf("the later grant: %v", err)
		}
		w.Release(lock)
	})
}

func TestAReleaseThatMeetsAForeignGrantAfterALostRequestWorked(t *testing.T) {
	for _, next := range []string{"nobody waits here", "somebody waits here"} {
		t.Run(next, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, wire := w.Client(lab.Config())
				b, _ := w.Client(lab.Config())
				lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
				var wg sync.WaitGroup
				if next == "somebody waits here" {
					wg.Go(func() { w.Release(w.Acquire(a, "job")) })
				}
				foreign := make(chan *leasehold.Lock)
				go func() { l := w.Acquire(b, "job"); wire.SetFault(nil); foreign <- l }()
				lab.Elapse(15 * time.Second)
				wire.SetFault(lab.Cut) // until the lease has run out and the other is granted
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("error %v", err)
				}
				w.Release(<-foreign)
				wg.Wait()
			})
		})
	}
}

// A key whose lock has lost its session may be granted to anyone while a release is
// under way: a foreign grant does not show that the release has been applied.
func TestAReleaseWhoseSessionIsGoneDoesNotTakeAnothersGrantForItsWork(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		lock := w.Acquire(c, "job")
		var taken atomic.Bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() && !taken.Load() {
				return lab.Cut(r)
			}
			return r.Send()
		})
		go func() {
			lab.Elapse(time.Millisecond)
			w.Delete(w.Sessions()[0]) // by hand
			lab.Elapse(10 * time.Second)
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x")})
			taken.Store(true)
		}()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestASecondReleaseNeverFreesTheNextHoldersGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := w.Queue(c, "job")
		var handOver func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case !r.Grants():
				return r.Send()
			case handOver == nil: // under way for long
				handOver = r.Send
				return lab.Cut(r)
			}
			// The next in line seeks the key by itself, and just behind its
			// refusal, by an engine that shows no record with one, comes the
			// hand-over after all.
			wire.SetFault(nil)
			_, _ = handOver()
			return lab.Refusal(400, "ConditionalCheckFailedException"), nil
		})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lock.Release(ended); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("first release: %v", err)
		}
		next := <-granted
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("second release: %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Errorf("the next holder's grant was released under it: %v", next.Err())
		}
		w.Release(next)
	})
}

func TestAReleaseGivesUpWithTheLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		began := time.Now()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < 18*time.Second || took > 25*time.Second {
			t.Errorf("took %v", took)
		}
		wire.SetFault(nil)
		if next, err := c.TryAcquire(t.Context(), "job"); err != nil {
			t.Errorf("a grant of its own that nobody believes in: %v", err)
		} else {
			w.Release(next)
		}
	})
}

func TestALockThatExpiredIsReleasedOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		c, wire := w.Client(lab.Config(), k.Edit)
		lock := w.Acquire(c, "job")
		k.Boot.Store(int64(time.Hour)) // nobody has looked since
		wire.SetFault(lab.Cut)
		wire.Sent()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if n := len(wire.Sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAReleaseThatMeetsAForeignGrantAtOnceIsALoss(t *testing.T) {
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
			t.Run(fmt.Sprintf("%s, somebody waits %v", name, waits), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, _ := w.Client(lab.Config())
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
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
					if !errors.Is(err, leasehold.ErrLost) {
						t.Errorf("error %v", err)
					}
					lab.Elapse(10 * time.Second)
				})
			})
		}
	}
}
