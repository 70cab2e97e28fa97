package hold_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestReleaseThatFoundLossIsNotRepeated(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		w.Steal("job")
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the record shows another: %v", err)
		}
		wire.Sent()
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) || len(wire.Sent()) != 0 {
			t.Errorf("once more: %v", err)
		}
	})
}

func TestRefusedReleaseOfLostLockIsSentAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		lab.Elapse(time.Minute)
		wire.SetFault(refuseReleases("AccessDeniedException"))
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("refused: %v", err)
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("allowed: %v", err)
		}
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("record %v", w.Item("job"))
		}
	})
}

func TestReleaseOfLostLockRecognisesDeletionByEarlierRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		deletes bool
		fate    lab.Fault // fate of the first release
		freed   bool
	}{
		"another's, after a refusal": {true, refuseReleases("AccessDeniedException"), false},
		"its own deletion":           {true, lab.LoseReply, true},
		"another's, as it deletes":   {true, lab.Cut, true},
		"another's, as it keeps":     {false, lab.Cut, false},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var released []error
				cfg := lab.Config()
				cfg.DeleteOnRelease = tc.deletes
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventReleased {
						released = append(released, e.Err)
					}
				}
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				lab.Elapse(time.Minute)
				wire.SetFault(tc.fate)
				_ = lock.Release(t.Context())
				wire.SetFault(nil)
				if w.Item("job") != nil {
					w.Delete("job")
				}
				_ = lock.Release(t.Context())
				if len(released) != 2 || released[0] == nil || errors.Is(released[0], leasehold.ErrLost) || (released[1] == nil) != tc.freed {
					t.Errorf("told of %v", released)
				}
			})
		})
	}
}

func TestReleaseAfterLeaseIsNotProvenByGrantOfAnotherClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.OutageConfig())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }))
		other, _ := w.Client(lab.OutageConfig())
		taken := w.Acquire(other, "job") // the outage does not affect the other client
		if err := lock.Err(); err != nil {
			t.Fatalf("not held through the outage: %v", err)
		}
		wire.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the other has it: %v", err)
		}
		w.Release(taken)
	})
}

func TestRefusedReleaseLeavesEarlierReleaseUnknown(t *testing.T) {
	for _, code := range []string{"AccessDeniedException", "ThrottlingException"} {
		t.Run(code, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.OutageConfig() // with this config, the lock expires but is not known to be lost
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job")
				wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }))
				lab.Elapse(time.Minute)
				wire.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("without an answer: %v", err)
				}
				wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(400, code) }))
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("then refused: %v", err)
				}
				wire.SetFault(nil)
				w.Release(lock)
			})
		})
	}
}

func TestReleaseWithLostReplyIsRecognisedAfterLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
			return lab.LoseReply(r)
		}))
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
		lab.Elapse(time.Minute) // longer than the lease
		next := w.Acquire(other, "job")
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("again, while another has it: %v", err)
		}
		w.Release(next)
	})
}

func TestUnansweredReleaseSucceedsOnceAnotherClientHoldsKey(t *testing.T) {
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
				wire.SetFault(lab.Cut) // the network is cut until the lease has run out and the other client is granted the key
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("error %v", err)
				}
				w.Release(<-foreign)
				wg.Wait()
			})
		})
	}
}

// If a lock has lost its session, its key may be granted to any client while a release is
// in flight. So another client's grant does not show that the release was applied.
func TestReleaseWithoutSessionIsNotProvenByNextGrant(t *testing.T) {
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
			w.Delete(w.Sessions()[0]) // the row is deleted, as if by hand
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

func TestSecondReleaseNeverFreesGrantOfNextHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		granted := w.Queue(c, "job")
		var handOver func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case !r.Grants():
				return r.Send()
			case handOver == nil: // the hand-over stays in flight for a long time
				handOver = r.Send
				return lab.Cut(r)
			}
			// The next goroutine requests the key itself. Its write is rejected by an
			// engine that returns no record with a rejection, and then the late hand-over
			// arrives.
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
