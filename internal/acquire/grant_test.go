package acquire_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestTryReadsSessionAgainInsteadOfTrustingOldRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		row := w.underSession("job")
		c := w.client("me")
		if _, err := c.One(t.Context(), c.want("job", noWait)); !errors.As(err, new(*heldError)) {
			t.Fatalf("its holder lives: %v", err)
		}
		session := w.proto.(protocol.Native).Session()
		r, err := session.Decode(w.item(row))
		if err != nil {
			t.Fatal(err)
		}
		w.write(session.Break(r, protocol.Break{Version: protocol.NewVersion()})) // breaks the session, as the session's own client does when it closes
		c.one("job", noWait)
	})
}

func TestGrantRequestIsAbandonedOnceGrantWouldBeUntrusted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Cut))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second))
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestGrantIsRequestedUntilItIsAnswered(t *testing.T) {
	for name, by := range map[string]struct {
		acquire func(ctx context.Context, c *leasehold.Client) error
		grants  int32
	}{
		"Acquire": {func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "a")) }, 1},
		"AcquireAny": {func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("a", "b")))
		}, 1},
		"AcquireAll": {func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b")))
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				var asked atomic.Int32
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Grants() && asked.Add(1) <= 250 {
						return nil, lab.ErrReset
					}
					return r.Send()
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := by.acquire(ctx, c); err != nil || asked.Load() != 250+by.grants {
					t.Errorf("after %d requests: %v", asked.Load(), err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}

func TestOwnLateAttemptOutsideConditionIsTakenOverAtOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var asked atomic.Int32
		var first *lab.Request
		var mended time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Grants() || !mended.IsZero() {
				return r.Send()
			}
			switch asked.Add(1) {
			case 1:
				first = r
			case 60: // at this request, the condition of a grant no longer names the first attempt
				_, _ = first.Send()
				mended = time.Now()
			}
			return nil, lab.ErrReset
		})
		lock := w.Acquire(c, "job")
		if took := time.Since(mended); took > 5*time.Second {
			t.Errorf("acquired %v later", took)
		}
		w.Release(lock)
	})
}
