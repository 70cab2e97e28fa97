package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAnUnsettledAttemptIsTakenOverAtOnceByItsOwnClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				_, _ = r.Send()
			}
			return lab.Cut(r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		lab.Elapse(10 * time.Second) // its undoing did not get through either
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Fatal("no unsettled attempt is there to be taken over")
		}
		wire.SetFault(nil)
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if _, took := lock.TookOver(); took {
			t.Error("its own attempt is reported as a dead holder")
		}
		w.Release(lock)
	})
}

func TestAGrantThatComesAfterItsCallerLeftIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if took := time.Since(began); took > 110*time.Millisecond {
			t.Errorf("returned after %v", took)
		}
		lab.Elapse(5 * time.Second)
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left behind %v", w.Item("job"))
		}
	})
}

func TestAGrantThatCannotBeReadIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		if _, err := c.Acquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrRecord) {
			t.Fatalf("error %v", err)
		}
		lab.Elapse(5 * time.Second)
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left held: %v", w.Item("job"))
		}
	})
}

func TestAnAcquireThatFailsLeavesNothing(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{
		"with renewal":    nil,
		"without renewal": {leasehold.WithoutRenewal()},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					switch {
					case !r.Grants():
						return r.Send()
					case w.Item("job") == nil:
						return lab.LoseReply(r)
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				})
				var op *leasehold.OpError
				if _, err := c.Acquire(t.Context(), "job", opts...); !errors.As(err, &op) {
					t.Fatalf("error %v", err)
				}
				synctest.Wait()
				if lab.Text(w.Item("job"), "isReleased") != "1" {
					t.Errorf("left behind %v", w.Item("job"))
				}
			})
		})
	}
}

func TestAnAttemptThatLandsAfterTheReleaseBlocksItsClientNotAtAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		var late func() (*http.Response, error)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			late = r.Send
			return nil, lab.ErrReset
		}))
		w.Release(w.Acquire(c, "job"))
		_, _ = late()
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Fatal("the delayed attempt did not land")
		}
		began := time.Now()
		w.Release(w.Acquire(c, "job"))
		if took := time.Since(began); took > time.Second {
			t.Errorf("waited %v for a grant of its own that nobody believes in", took)
		}
	})
}

func TestAnUnsettledGrantBlocksItsClientNotAtAll(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && w.Item("job") == nil {
				_, _ = r.Send()
			}
			return lab.Cut(r) // the release that undoes it is lost, too
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		lab.Elapse(10 * time.Second)
		wire.SetFault(nil)
		began := time.Now()
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatalf("a grant of its own that nobody believes in: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if _, ok := lock.TookOver(); ok {
			t.Error("it was nobody's work")
		}
		w.Release(lock)
	})
}
