package behaviour_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// overJSON converts a grant to JSON and back, as if another process had read it.
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

func TestGrantJSONRejectsLeaseTooLongForDuration(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	for ms, fits := range map[int64]bool{0: true, most: true, most + 1: false, -1: false} {
		var g leasehold.Grant
		err := json.Unmarshal(fmt.Appendf(nil, `{"key":"job","leaseMs":%d,"trustedUntil":"2026-11-21T12:00:00Z"}`, ms), &g)
		if (err == nil) != fits || fits && g.Lease.Milliseconds() != ms {
			t.Errorf("leaseMs %d: %v, %v", ms, g.Lease, err)
		}
	}
}

func TestGrantJSONRejectsTimeOutsideYears0To9999(t *testing.T) {
	for at, fits := range map[string]bool{
		"0000-01-01T00:00:00Z": true, "9999-12-31T23:59:59Z": true,
		"0000-01-01T00:00:00+02:00": false, "9999-12-31T23:59:59-02:00": false, "0001-01-01T00:00:00Z": false,
	} {
		var g leasehold.Grant
		if err := json.Unmarshal([]byte(`{"key":"job","trustedUntil":"`+at+`"}`), &g); (err == nil) != fits {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestDetachOfSharedGrantIsRejected(t *testing.T) {
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

func TestDetachOfReleasedHandleReturnsError(t *testing.T) {
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

func TestDetachedGrantListsUnansweredRenewals(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "deploy", leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Slow(time.Second))) // the renewal is applied, and the caller leaves before its reply
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
