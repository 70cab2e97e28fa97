package behaviour_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// Without MaxSkew, neither trust nor takeovers depend on wall clocks. The times in the
// records then serve only people and TTL.
func TestWallClockChangeDoesNotAffectTrustOrTakeover(t *testing.T) {
	const day = 24 * time.Hour
	for name, cfg := range lab.Leases() {
		// course makes one client hold a key and another client wait for it. After a minute
		// it cuts the holder off from the network. Every 700 ms it sets the wall clocks of
		// both clients. It returns when trust ended, and when the waiter took the key over.
		course := func(t *testing.T, step func(i int) (holder, waiter time.Duration)) (ended, taken time.Duration) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				atHolder, atWaiter := &lab.Jumps{}, &lab.Jumps{}
				half := lab.Chance(func() float64 { return 0.5 })
				a, wire := w.Client(cfg, atHolder.Edit, half)
				b, _ := w.Client(cfg, atWaiter.Edit, half)
				lock := w.Acquire(a, "job")
				began := time.Now()
				stop := make(chan struct{})
				go func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						case <-time.After(700 * time.Millisecond):
							holder, waiter := step(i)
							atHolder.Wall.Add(int64(holder))
							atWaiter.Wall.Add(int64(waiter))
						}
					}
				}()
				time.AfterFunc(time.Minute, func() { wire.SetFault(lab.Cut) })
				context.AfterFunc(lock.Context(), func() { ended = time.Since(began) })
				next := w.Acquire(b, "job")
				taken = time.Since(began)
				close(stop)
				w.Release(next)
				wire.SetFault(nil)
			})
			return ended, taken
		}
		t.Run(name, func(t *testing.T) {
			wantEnded, wantTaken := course(t, func(int) (_, _ time.Duration) { return 0, 0 })
			if wantEnded == 0 || wantTaken <= wantEnded {
				t.Fatalf("trust ended after %v, and the key was taken over after %v", wantEnded, wantTaken)
			}
			for how, step := range map[string]func(i int) (holder, waiter time.Duration){
				"forward": func(int) (_, _ time.Duration) { return day, day },
				"back":    func(int) (_, _ time.Duration) { return -day, -day },
				"apart":   func(int) (_, _ time.Duration) { return -time.Minute, time.Minute },
				"to and fro": func(i int) (_, _ time.Duration) {
					return day * time.Duration(1-2*(i%2)), -day * time.Duration(1-2*(i%2))
				},
			} {
				if ended, taken := course(t, step); ended != wantEnded || taken != wantTaken {
					t.Errorf("%s: trust ended after %v, not %v; the key was taken over after %v, not %v", how, ended, wantEnded, taken, wantTaken)
				}
			}
		})
	}
}
