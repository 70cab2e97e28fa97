package acquire_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAcquireAllCountsTrustOfEachKeyFromSendingOfItsGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2*time.Second)))
		began := time.Now()
		g := w.AcquireAll(c, leasehold.Keys("a", "b"), leasehold.WithoutRenewal())
		for i, least := range []time.Duration{17 * time.Second, 19 * time.Second} {
			if trusted := g.Locks()[i].TrustedUntil().Sub(began); trusted > least+time.Second || trusted < least {
				t.Errorf("%v: trusted for %v after the beginning", g.Locks()[i].Key(), trusted)
			}
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAcquireAllHoldsNoKeyAfterUnansweredGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && bytes.Contains(r.Body, []byte(`"b"`)) {
				return lab.Cut(r)
			}
			return r.Send()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.AcquireAll(ctx, leasehold.Keys("a", "b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if held := c.Held(); len(held) > 0 {
			t.Errorf("still holds %v", held[0].Key())
		}
		if held := w.HeldAmong(leasehold.Keys("a")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		wire.SetFault(nil)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAcquireAllAndAcquireAnyGrantUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		g := w.AcquireAll(holder, leasehold.Keys("x", "y"))
		if one, err := holder.AcquireAny(t.Context(), leasehold.Keys("x", "z")); err != nil || one.Key().Partition != "z" {
			t.Fatalf("any: %v, %v", one, err)
		}
		for _, key := range []string{"x", "y", "z"} {
			if lab.Text(w.Item(key), "session") == "" {
				t.Errorf("%s is under no session", key)
			}
		}
		wire.SetFault(lab.Cut)
		began := time.Now()
		heir, _ := w.Client(lab.SharedConfig())
		all := w.AcquireAll(heir, leasehold.Keys("x", "y"))
		one, err := heir.AcquireAny(t.Context(), leasehold.Keys("z"))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 25*time.Second || g.Err() == nil {
			t.Errorf("taken over after %v, the dead holder: %v", took, g.Err())
		}
		w.Release(one)
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
		_ = heir.Close(t.Context())
	})
}
