package leasehold_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// overJSON hands a grant to another process.
func overJSON(t *testing.T, g leasehold.Grant) leasehold.Grant {
	t.Helper()
	b, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var out leasehold.Grant
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAGrantIsTakenUpByAnotherProcessOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal(), leasehold.WithLease(10*time.Minute), leasehold.WithData([]byte("x")))
		wire.Sent()
		g := w.Detach(lock)
		if !errors.Is(lock.Err(), leasehold.ErrDetached) || len(wire.Sent()) != 0 {
			t.Errorf("error %v", lock.Err())
		}
		if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrDetached) {
			t.Errorf("release of a detached lock: %v", err)
		}
		lab.Elapse(5 * time.Minute)
		g = overJSON(t, g)
		b, _ := w.Client(lab.Config())
		resumed, err := b.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		if resumed.Token() != lock.Token() || string(resumed.Data()) != "x" || resumed.Record().Owner != lock.Record().Owner {
			t.Errorf("resumed %+v", resumed.Record())
		}
		lab.Elapse(time.Hour) // it is renewed now
		if err := resumed.Err(); err != nil {
			t.Errorf("resumed: %v", err)
		}
		d, _ := w.Client(lab.Config())
		if _, err := d.Resume(t.Context(), g); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("resumed twice: %v", err)
		}
		w.Release(resumed)
		if _, err := d.Resume(t.Context(), g); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("resumed after the release: %v", err)
		}
	})
}

func TestAGrantThatLapsedIsResumedUnlessItWasTaken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		g := w.Detach(lock)
		lab.Elapse(time.Hour)
		lock, err := a.Resume(t.Context(), g)
		if err != nil {
			t.Fatalf("nobody took it: %v", err)
		}
		g, err = lock.Detach()
		if err != nil {
			t.Fatal(err)
		}
		b, _ := w.Client(lab.Config())
		taken := w.Acquire(b, "deploy")
		_, err = a.Resume(t.Context(), g)
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced || lost.By.Token != taken.Token() {
			t.Errorf("taken: %v", err)
		}
		w.Release(taken)
	})
}

func TestAResumeWhoseReplyIsLostIsRecognised(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy")
		g := w.Detach(lock)
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lock, err := a.Resume(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		w.Release(lock)
	})
}

func TestAResumedKeyHasItsLineHere(t *testing.T) {
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

func TestAResumedLockOutsideTheLineEndsNobodysTurn(t *testing.T) {
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

func TestAResumeThatEndedUnansweredMayBeRepeated(t *testing.T) {
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

func TestAGrantThatIsNotOneIsRefusedBeforeItIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "deploy")
		g := w.Detach(lock)
		wire.Sent()
		for name, change := range map[string]func(*leasehold.Grant){
			"another table": func(g *leasehold.Grant) { g.Table = "other" },
			"no id":         func(g *leasehold.Grant) { g.ID = "" },
			"no versions":   func(g *leasehold.Grant) { g.Versions = nil },
			"no key":        func(g *leasehold.Grant) { g.Key = leasehold.Key{} },
			"a lease of 0":  func(g *leasehold.Grant) { g.Lease = 0 },
		} {
			bad := g
			change(&bad)
			if _, err := c.Resume(t.Context(), bad); err == nil || len(wire.Sent()) != 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAResumedLockHandsOverNoLineOfAnother(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.Detach(w.Acquire(c, "job"))
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

func TestASharedGrantIsNotDetached(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		inner, err := c.Acquire(lock.Context(), "job", leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lock.Detach(); err == nil || inner.Err() != nil {
			t.Errorf("detach: %v, the other handle: %v", err, inner.Err())
		}
		w.Release(inner)
		w.Release(lock)
	})
}

func TestAReleasedHandleDetachesNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job")
		inner, err := c.Acquire(lock.Context(), "job", leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		w.Release(inner)
		if _, err := inner.Detach(); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("detach of a released handle: %v", err)
		}
		if err := lock.Err(); err != nil {
			t.Errorf("the other handle: %v", err)
		}
		_ = lock.Release(t.Context())
	})
}

func TestARefusalAfterALostReplyIsAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		fits func(lab.Call) bool
		do   func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
	}{
		"renew": {lab.Call.Renews, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
			return lock.Renew(ctx, leasehold.WithData([]byte("x")))
		}},
		"break": {lab.Call.Releases, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			return c.Break(ctx, lock.Record())
		}},
		"resume": {lab.Call.Renews, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			g, err := lock.Detach()
			if err != nil {
				return err
			}
			_, err = c.Resume(ctx, g)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				lost := false
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if tc.fits(r.Call) && !lost {
						lost = true
						return lab.LoseReply(r)
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				})
				if err := tc.do(t.Context(), c, lock); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("landed, then refused: %v", err)
				}
				wire.SetFault(nil)
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestADetachedGrantNamesRenewalsThatHadNoAnswer(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(time.Second))) // it lands, and the caller leaves before its reply
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := lock.Renew(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("renewal: %v", err)
		}
		g := w.Detach(lock)
		next, err := b.Resume(t.Context(), g)
		if err != nil {
			t.Fatalf("resume behind a renewal that landed unseen: %v", err)
		}
		w.Release(next)
		lab.Elapse(3 * time.Second)
	})
}
