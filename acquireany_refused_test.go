package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestATryForOneOfSeveralSaysSoWhenAFreedKeyIsFollowedBySilence(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		other := w.Acquire(a, "a")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case strings.Contains(string(r.Body), `"S":"b"`):
				return lab.Cut(r)
			case r.Grants():
				res, err := showNothing(r)
				w.Release(other) // between the refusal and the look
				return res, err
			}
			return r.Send()
		})
		began := time.Now()
		_, err := b.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
		if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || op.Key.Partition != "b" || !strings.Contains(err.Error(), "gave up after 10s") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a try took %v", took)
		}
		_ = b.Close(t.Context())
	})
}

func TestOneOfSeveralKeysOutOfOrderIsADeadlock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		others := w.AcquireAll(a, leasehold.Keys("a", "b", "z"))
		group := w.AcquireAll(b, leasehold.Keys("m", "n"))
		wire.Sent()
		ctx, cancel := context.WithTimeout(group.Context(), time.Hour)
		defer cancel()
		for name, keys := range map[string][]leasehold.Key{
			"one":               leasehold.Keys("a"),
			"two":               leasehold.Keys("b", "a"),
			"one and a held":    leasehold.Keys("a", "m"),
			"nobody's but ours": leasehold.Keys("n", "m"),
		} {
			if _, err := b.AcquireAny(ctx, keys); !errors.Is(err, leasehold.ErrDeadlock) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if sent := wire.Sent(); len(sent) > 0 {
			t.Errorf("%d requests were sent", len(sent))
		}
		if _, err := b.AcquireAny(ctx, leasehold.Keys("a", "b"), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a try does not mind the order: %v", err)
		}

		// One that is in order may be waited for, and either of the two taken.
		granted := make(chan *leasehold.Lock)
		go func() {
			lock, err := b.AcquireAny(ctx, leasehold.Keys("a", "z"))
			if err != nil {
				t.Error(err)
			}
			granted <- lock
		}()
		lab.Elapse(time.Minute)
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if lock := <-granted; lock != nil {
			w.Release(lock)
		}
		if err := group.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
