package liveness_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// each calls fn for n different keys at the same time, and returns when all these calls have
// returned.
func each(name string, n int, fn func(key string)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(fmt.Sprint(name, i)) })
	}
	wg.Wait()
}

func TestTakeoversAreOnTimeIfCacheOfRecordVersionsIsSmall(t *testing.T) {
	ways := map[string]func(ctx context.Context, c *leasehold.Client, key string) (*leasehold.Lock, error){
		"Acquire": func(ctx context.Context, c *leasehold.Client, key string) (*leasehold.Lock, error) {
			return c.Acquire(ctx, key)
		},
		"AcquireAny": func(ctx context.Context, c *leasehold.Client, key string) (*leasehold.Lock, error) {
			return c.AcquireAny(ctx, leasehold.Keys(key, key+"/second"))
		},
		"AcquireAll": func(ctx context.Context, c *leasehold.Client, key string) (*leasehold.Lock, error) {
			g, err := c.AcquireAll(ctx, leasehold.Keys(key, key+"/second"))
			if err != nil {
				return nil, err
			}
			return g.Locks()[0], nil
		},
	}
	const keys = 20
	for name, acquire := range ways {
		for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
			t.Run(name+", "+kind, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					holder, wire := w.Client(cfg)
					each("key", keys, func(key string) {
						if lock, err := acquire(t.Context(), holder, key); err != nil || lock == nil {
							t.Error(err)
						}
						if name == "AcquireAny" {
							w.Acquire(holder, key+"/second")
						}
					})
					wire.SetFault(lab.Cut)
					c, wire := w.Client(lab.Config(), lab.Memory(5))
					ctx := w.Within(time.Minute)
					began := time.Now()
					each("key", keys, func(key string) {
						if _, err := acquire(ctx, c, key); err != nil {
							t.Error(err)
						} else if took := time.Since(began); took > 22*time.Second {
							t.Errorf("%s taken over after %v, a lease is 20s", key, took)
						}
					})
					// During a lease of 20 s, the head of a queue polls about 140 times: more often
					// at first, and then four times a second.
					if sent := len(wire.Sent()); sent > 160*keys {
						t.Errorf("%d requests for %d keys", sent, keys)
					}
					_, _ = c.Close(t.Context()), holder.Close(t.Context())
				})
			})
		}
	}
}

func TestDeadLeaderIsDetectedOnTimeIfCacheOfRecordVersionsIsSmall(t *testing.T) {
	const keys = 20
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.Config())
		each("key", keys, func(key string) { w.Acquire(holder, key) })
		wire.SetFault(lab.Cut)
		c, _ := w.Client(lab.Config(), lab.Memory(5))
		began := time.Now()
		each("key", keys, func(key string) {
			ctx := w.Within(time.Minute)
			for leader, err := range lab.Must(election.New(c, key))(t).Observe(ctx) {
				if err != nil {
					t.Error(err)
				}
				if leader.Token == 0 {
					break
				}
			}
			if took := time.Since(began); took > 22*time.Second {
				t.Errorf("%s seen dead after %v, a lease is 20s", key, took)
			}
		})
		_, _ = c.Close(t.Context()), holder.Close(t.Context())
	})
}
