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

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestResumeSucceedsAfterHundredsOfUnansweredResumes(t *testing.T) {
	for name, unanswered := range map[string]lab.Fault{
		"none of them arrived": func(*lab.Request) (*http.Response, error) {
			return nil, lab.ErrReset
		},
		"all of them landed": lab.LoseReply,
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Lease = time.Hour
				c, wire := w.Client(cfg)
				g := w.Detach(w.Acquire(c, "deploy"))
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Op != "UpdateItem" {
						return r.Send()
					}
					return unanswered(r)
				})
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Fatalf("without an answer: %v", err)
					}
					cancel()
				}
				wire.SetFault(nil)
				lock, err := c.Resume(t.Context(), g)
				if err != nil {
					t.Fatalf("with one: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

func TestResumeWithoutNetworkReturnsWhenContextEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c, wire := w.Client(cfg)
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(func(*lab.Request) (*http.Response, error) {
			return nil, lab.ErrReset
		})
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			began := time.Now()
			if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) || time.Since(began) > 5*time.Second {
				t.Fatalf("error %v after %v", err, time.Since(began))
			}
			cancel()
		}
	})
}

func TestResumeRecognisesItsOwnEarlierAttempt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		over := time.Now().Add(30 * time.Second) // longer than the lease
		wire.SetFault(lab.Once(lab.Call.Renews, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if time.Now().Before(over) {
					return lab.Refusal(400, "ThrottlingException"), nil
				}
				return r.Send()
			})
			return lab.LoseReply(r)
		}))
		lock, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestConcurrentResumesOfSameGrantSucceedOnlyOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second))) // the renewal is applied at once, and answered late
		ended := make(chan error, 2)
		resume := func() {
			_, err := c.Resume(t.Context(), g)
			ended <- err
		}
		go resume()
		lab.Elapse(time.Second)
		go resume()
		first, second := <-ended, <-ended
		if first != nil || !errors.Is(second, leasehold.ErrLost) {
			t.Errorf("one: %v, the other: %v", first, second)
		}
		if held := c.Held(); len(held) != 1 {
			t.Errorf("held %d times", len(held))
		}
		_ = c.Close(t.Context())
	})
}

func TestResumeCancelledByCallerCanBeRepeated(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("left: %v", err)
		}
		lock, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestResumeEndedByCloseLeavesGrantHeld(t *testing.T) {
	for name, leaves := range map[string]time.Duration{"its caller waits": time.Hour, "its caller has left": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				other, _ := w.Client(lab.Config())
				g := w.Detach(w.Acquire(c, "deploy"))
				wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(2*time.Second)))
				ctx, cancel := context.WithTimeout(t.Context(), leaves)
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := c.Resume(ctx, g)
					ended <- err
				}()
				lab.Elapse(time.Second)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-ended; !errors.Is(err, leasehold.ErrClosed) && !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("resume: %v", err)
				}
				if _, err := other.TryAcquire(t.Context(), "deploy"); !errors.Is(err, leasehold.ErrHeld) {
					t.Errorf("another, while the grant says that it is trusted until %v: %v", g.TrustedUntil, err)
				}
			})
		})
	}
}

// Resume logs a warning that the client holds many locks, after its answer and before the
// check whether its client is closing. The log handler blocks it there.
func TestResumeAnsweredDuringCloseLeavesGrantHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		wire, closing := w.Wire(), make(chan struct{})
		cfg := lab.Config()
		cfg.Logger = slog.New(holdUp{slog.DiscardHandler, closing})
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = noPool{wire} }), cfg)
		g := w.Detach(w.Acquire(c, "deploy"))
		for i := range 9 {
			w.Acquire(c, fmt.Sprint("other ", i), leasehold.WithoutRenewal())
		}
		resumed, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := c.Resume(t.Context(), g)
			resumed <- err
		}()
		synctest.Wait()
		if len(resumed) > 0 {
			t.Error("not what this test is about: it was answered before Close")
		}
		go func() { closed <- c.Close(t.Context()) }()
		synctest.Wait()
		close(closing)
		if err := <-resumed; !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("resume: %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		other, _ := w.Client(lab.Config())
		if _, err := other.TryAcquire(t.Context(), "deploy"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("another, while the grant says that it is trusted until %v: %v", g.TrustedUntil, err)
		}
	})
}

func TestResumedLockBlocksGoroutinesOfSameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(a, "deploy"))
		lock, err := a.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan *leasehold.Lock)
		go func() { next <- w.Acquire(a, "deploy") }()
		wire.Sent()
		lab.Elapse(4 * time.Second)
		for _, c := range wire.Sent() {
			if !c.Renews() {
				t.Errorf("sent %s while the key is held here", c.Op)
			}
		}
		w.Release(lock)
		w.Release(<-next)
	})
}

func TestReleaseOfResumedLockWakesOnlyOneLocalWaiter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		granted := make(chan *leasehold.Lock, 2)
		for range 2 {
			go func() { granted <- w.Acquire(c, "deploy") }()
			synctest.Wait()
		}
		lock, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
		first := <-granted
		wire.Sent()
		lab.Elapse(4 * time.Second)
		for _, c := range wire.Sent() {
			if !c.Renews() {
				t.Errorf("the second seeks the key, too: %s", c.Op)
			}
		}
		w.Release(first)
		w.Release(<-granted)
	})
}

func TestUnansweredResumeMayBeRepeated(t *testing.T) {
	for name, fault := range map[string]lab.Fault{
		"its reply was lost": lab.LoseReply,
		"its reply was late": lab.Slow(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				g := w.Detach(w.Acquire(c, "deploy"))
				wire.SetFault(lab.Once(lab.Call.Renews, fault))
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
				defer cancel()
				if _, err := c.Resume(ctx, g); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Fatalf("error %v", err)
				}
				lab.Elapse(2 * time.Second)
				if n := len(c.Held()); n != 0 {
					t.Errorf("%d locks held that nobody has", n)
				}
				lock, err := c.Resume(t.Context(), g)
				if err != nil {
					t.Fatalf("again: %v", err)
				}
				w.Release(lock)
			})
		})
	}
}

// While the queue is suspended, the goroutine that is next in turn requests the key itself.
func TestReleaseOfResumedLockKeepsTurnOfLocalWaiter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "job"))
		w.Suspend("job", time.Minute)
		ctx, leave := context.WithCancel(t.Context())
		seeker := make(chan error, 1)
		go func() { _, err := c.Acquire(ctx, "job"); seeker <- err }()
		synctest.Wait()
		time.Sleep(30 * time.Millisecond)
		lock, err := c.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		granted := w.Queue(c, "job")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		released := make(chan error, 1)
		go func() { released <- lock.Release(t.Context()) }()
		time.Sleep(500 * time.Millisecond)
		leave()
		<-seeker
		if err := <-released; err != nil {
			t.Error(err)
		}
		w.Release(<-granted)
	})
}

func TestThrottledResumeDoesNotSettleEarlierResume(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "deploy"))
		resume := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := c.Resume(ctx, g)
			return err
		}
		wire.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
		if err := resume(); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
		wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") }))
		if err := resume(); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("then throttled: %v", err)
		}
	})
}

func TestRejectedResumeReportsHowGrantEnded(t *testing.T) {
	for _, l := range []layout.Layout{
		layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}, layout.PythonDynamoDBLock{}, layout.DynamoDLM{}, layout.DyndbMutex{},
	} {
		for name, tc := range map[string]struct {
			meanwhile func(w *lab.World, other *leasehold.Client, g leasehold.Grant)
			want      leasehold.LostReason
		}{
			"resumed elsewhere": {func(w *lab.World, other *leasehold.Client, g leasehold.Grant) {
				resume(w, other, g)
			}, leasehold.LostReplaced},
			"resumed and released elsewhere": {func(w *lab.World, other *leasehold.Client, g leasehold.Grant) {
				w.Release(resume(w, other, g))
			}, leasehold.LostBroken},
			"granted anew": {func(w *lab.World, other *leasehold.Client, g leasehold.Grant) {
				w.Release(resume(w, other, g))
				w.Acquire(other, "deploy")
			}, leasehold.LostReplaced},
		} {
			t.Run(l.Name()+", "+name, func(t *testing.T) {
				lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
					c, _ := w.Client(cfg)
					other, _ := w.Client(cfg)
					g := w.Detach(w.Acquire(c, "deploy"))
					tc.meanwhile(w, other, g)
					_, err := c.Resume(t.Context(), g)
					var lost *leasehold.LostError
					if !errors.As(err, &lost) || lost.Reason != tc.want {
						t.Errorf("error %v, want the reason %s", err, tc.want)
					}
				})
			})
		}
	}
}

func resume(w *lab.World, c *leasehold.Client, g leasehold.Grant) *leasehold.Lock {
	w.T.Helper()
	lock, err := c.Resume(w.T.Context(), g)
	if err != nil {
		w.T.Fatal(err)
	}
	return lock
}
