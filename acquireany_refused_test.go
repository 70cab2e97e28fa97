package leasehold_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestATryForOneOfSeveralSaysSoWhenAFreedKeyIsFollowedBySilence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		other := w.acquire(a, "a")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case strings.Contains(string(c.body), `"S":"b"`):
				return hang(ctx)
			case c.grants():
				res, err := showNothing(ctx, c, next)
				w.release(other) // between the refusal and the look
				return res, err
			}
			return next()
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
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		others := w.acquireAll(a, leasehold.Keys("a", "b", "z"))
		group := w.acquireAll(b, leasehold.Keys("m", "n"))
		wire.sent()
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
		if sent := wire.sent(); len(sent) > 0 {
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
		elapse(time.Minute)
		if err := others.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if lock := <-granted; lock != nil {
			w.release(lock)
		}
		if err := group.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
