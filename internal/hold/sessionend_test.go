package hold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCloseReleasesAllLocksOfSessionInOneWrite(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, log := lab.SharedConfig(), new(bytes.Buffer)
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		c, wire := w.Client(cfg)
		for i := range 20 {
			w.Acquire(c, fmt.Sprint("lock/", i))
		}
		wire.Sent()
		if err := c.Close(t.Context()); err != nil || log.Len() > 0 {
			t.Fatal(err, log)
		}
		if sent := wire.Sent(); len(sent) != 1 {
			t.Errorf("%d requests", len(sent))
		}
		other, otherWire := w.Client(lab.Config())
		for i := range 20 {
			lock, err := other.TryAcquire(t.Context(), fmt.Sprint("lock/", i))
			if err != nil {
				t.Fatal(err)
			}
			w.Release(lock)
		}
		// Each key needs a rejected grant, a grant and a release. The session is read only
		// once.
		if sent := otherWire.Sent(); len(sent) != 61 {
			t.Errorf("%d requests for 20 locks of a dead session", len(sent))
		}
	})
}

func TestCloseKeepsSessionWhileDoFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		w.Acquire(c, "free")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = c.Do(t.Context(), "busy", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		lab.Elapse(0)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := c.Close(ctx); err == nil {
			t.Error("Close says nothing of the function that has not returned")
		}
		other, _ := w.Client(lab.Config())
		lock, err := other.TryAcquire(t.Context(), "free")
		if err != nil {
			t.Errorf("what nobody uses any more: %v", err)
		} else {
			w.Release(lock)
		}
		if _, err := other.TryAcquire(t.Context(), "busy"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("what is in use: %v", err)
		}
		close(stop)
		wg.Wait()
	})
}

func TestSessionIsNotCreatedAfterClose(t *testing.T) {
	for name, limit := range map[string]time.Duration{"that waits for it": time.Minute, "that has no time": 0} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.SharedConfig()
				cfg.ReleaseGrace = time.Second
				c, wire := w.Client(cfg)
				wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
					time.Sleep(2 * time.Second) // the request takes two seconds to arrive
					return r.Send()
				}))
				refused := make(chan error, 1)
				go func() { refused <- lab.ErrorOf(c.Acquire(t.Context(), "job")) }()
				lab.Elapse(time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				_ = c.Close(ctx)
				if err := <-refused; !errors.Is(err, leasehold.ErrClosed) {
					t.Errorf("acquired: %v", err)
				}
				lab.Elapse(10 * time.Second)
				wire.Sent()
				lab.Elapse(time.Minute)
				if n := len(wire.Sent()); n != 0 {
					t.Errorf("%d requests of a client that is closed", n)
				}
				for _, row := range w.Sessions() {
					if lab.Text(w.Item(row), "dead") != "1" {
						t.Errorf("left behind: %v", w.Item(row))
					}
				}
			})
		})
	}
}

func TestReleaseAfterCloseOfSessionSucceedsWithoutRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		released := 0
		cfg := lab.SharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventReleased {
				released++
			}
		}
		c, wire := w.Client(cfg)
		lock := w.Acquire(c, "job")
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wire.Sent()
		if err := lock.Release(t.Context()); err != nil { // the release that the caller had deferred
			t.Errorf("released again: %v", err)
		}
		if n := len(wire.Sent()); n != 0 || released != 1 {
			t.Errorf("%d requests after Close, %d releases reported", n, released)
		}
	})
}

func TestLockIsNotReportedReleasedIfCloseCannotEndSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var reported []error
		cfg := lab.SharedConfig()
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventReleased {
				reported = append(reported, e.Err)
			}
		}
		c, wire := w.Client(cfg)
		lock := w.Acquire(c, "job")
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("close: %v", err)
		}
		if len(reported) != 1 || !errors.Is(reported[0], leasehold.ErrUnknownOutcome) {
			t.Errorf("reported %v", reported)
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil || lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("released again: %v, %v", err, w.Item("job"))
		}
		lab.Elapse(5 * time.Second) // let the last request of Close end
	})
}

func TestCloseReportsVanishedSessionRow(t *testing.T) {
	for name, tc := range map[string]struct {
		unheard bool
		want    error
	}{
		"before Close":                       {false, leasehold.ErrLost},
		"behind Close's write, not answered": {true, nil}, // no error, as the request of Close is the first that could end the session
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.SharedConfig())
				w.Acquire(c, "job")
				marks := func(sent lab.Call) bool { return sent.Sets("dead") }
				wire.SetFault(lab.Once(marks, func(r *lab.Request) (*http.Response, error) {
					if tc.unheard {
						_, _ = r.Send()
					}
					w.Delete(w.Sessions()[0])
					if tc.unheard {
						return nil, lab.ErrReset
					}
					return r.Send()
				}))
				if err := c.Close(t.Context()); !errors.Is(err, tc.want) {
					t.Errorf("close: %v, want %v", err, tc.want)
				}
			})
		})
	}
}

func TestCloseReportsSessionMarkedDeadByAnotherClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "job")
		marks := func(sent lab.Call) bool { return sent.Sets("dead") }
		wire.SetFault(lab.Once(marks, func(*lab.Request) (*http.Response, error) { // the first request to mark the row is lost, and another client marks the row before the second arrives
			w.Update(w.Sessions()[0], map[string]types.AttributeValue{"dead": lab.Str("1"), "recordVersionNumber": lab.Str("another's")})
			return nil, lab.ErrReset
		}))
		if err := c.Close(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("close: %v", err)
		}
	})
}

func TestCloseDoesNotReportSessionLostEarlier(t *testing.T) {
	for name, lose := range map[string]func(w *lab.World, wire *lab.Wire){
		"deleted": func(w *lab.World, _ *lab.Wire) { w.Delete(w.Sessions()[0]); lab.Elapse(10 * time.Second) },
		"expired": func(_ *lab.World, wire *lab.Wire) {
			wire.SetFault(lab.Cut)
			lab.Elapse(30 * time.Second)
			wire.SetFault(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.SharedConfig())
				lock := w.Acquire(c, "job")
				lose(w, wire)
				if !errors.Is(lock.Err(), leasehold.ErrLost) {
					t.Fatalf("the lock: %v", lock.Err())
				}
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}

func TestGrantAnsweredAfterCloseIsNotReportedAsLoss(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared lease: %v", shared), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.SharedLease = shared
				var mu sync.Mutex
				var told []leasehold.EventKind
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Key.Partition == "job" {
						told = append(told, e.Kind)
					}
				}
				c, wire := w.Client(cfg)
				w.Release(w.Acquire(c, "other"))
				wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(100*time.Millisecond)))
				ended := make(chan error)
				go func() { _, err := c.Acquire(t.Context(), "job"); ended <- err }()
				synctest.Wait()
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
				if err := <-ended; !errors.Is(err, leasehold.ErrClosed) {
					t.Errorf("acquire: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(told) != 2 || told[0] != leasehold.EventGaveUp || told[1] != leasehold.EventReleased {
					t.Errorf("events %v", told)
				}
				if !w.IsReleased("job") {
					t.Error("the key is not free")
				}
			})
		})
	}
}

func TestCommitAndReleaseDuringCloseIsNotReportedAsLost(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared lease: %v", shared), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.SharedLease = shared
				c, wire := w.Work().Client(cfg)
				lock := w.Acquire(c, "job")
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Commits() {
						return lab.Conflict(r.Call), nil
					}
					return r.Send()
				})
				ended := make(chan error)
				go func() { ended <- lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1"))) }()
				lab.Elapse(time.Second)
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
				if err := <-ended; !errors.Is(err, leasehold.ErrClosed) || errors.Is(err, leasehold.ErrLost) {
					t.Errorf("commit: %v", err)
				}
				if !w.IsReleased("job") {
					t.Error("the key is not free")
				}
				w.WantLog()
			})
		})
	}
}
