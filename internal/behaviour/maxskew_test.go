package behaviour_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/layout"
)

// withMaxSkew returns the configuration of a client whose wall clock is wrong by at most the given
// MaxSkew.
func withMaxSkew(skew time.Duration) leasehold.Config {
	cfg := lab.Config()
	cfg.MaxSkew = skew
	return cfg
}

// withDeadHolder runs the given test twice. In each run, a client acquires "job", renews the lock,
// and dies. The lease end is stored in the record of "job" in one run, and in the row of the
// client's session in the other.
func withDeadHolder(t *testing.T, cfg leasehold.Config, test func(t *testing.T, w *lab.World, died *leasehold.Lock)) {
	t.Helper()
	lab.Each(t, map[string]bool{"a lock": false, "a shared lease": true}, func(t *testing.T, w *lab.World, shared bool) {
		cfg := cfg
		cfg.SharedLease = shared
		_, wire, lock := w.Holding(cfg)
		renew(w, lock)
		wire.SetFault(lab.Cut)
		test(t, w, lock)
	})
}

func TestTakeoverNeedsNoObservationIfBothClientsHaveMaxSkew(t *testing.T) {
	const lease, skew = 20 * time.Second, 500 * time.Millisecond
	withDeadHolder(t, withMaxSkew(time.Second), func(t *testing.T, w *lab.World, _ *leasehold.Lock) {
		lab.Elapse(lease + skew - time.Millisecond)
		early, _ := w.Client(withMaxSkew(skew))
		lab.WantErr(t, "a millisecond too early", lab.ErrorOf(early.Acquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
		lab.Elapse(time.Millisecond)
		_, wire, lock := w.Holding(withMaxSkew(skew), leasehold.NoWaitEvenIfDead())
		// Up to three writes: a rejected grant, a write that marks the session as dead, and
		// a takeover.
		lab.WantRange(t, "writes", lab.Count(wire.Sent(), func(c lab.Call) bool { return c.Op == "UpdateItem" }), 0, 3)
		w.Release(lock)
	})
}

func TestWaiterTakesOverAtLeaseEndPlusMaxSkewOfWaiter(t *testing.T) {
	withDeadHolder(t, withMaxSkew(time.Second), func(t *testing.T, w *lab.World, _ *leasehold.Lock) {
		began := time.Now()
		lab.Elapse(15 * time.Second)
		_, _, lock := w.Holding(withMaxSkew(2 * time.Second))
		lab.Want(t, "granted after the dead holder's grant", time.Since(began), 22*time.Second)
		w.Release(lock)
	})
}

func TestCallWithNoWaitTakesOverAtLeaseEndPlusMaxSkewOfCaller(t *testing.T) {
	withDeadHolder(t, withMaxSkew(time.Second), func(t *testing.T, w *lab.World, _ *leasehold.Lock) {
		lab.Elapse(21 * time.Second)
		began := time.Now()
		_, _, lock := w.Holding(withMaxSkew(3*time.Second), leasehold.NoWait())
		lab.Want(t, "granted after", time.Since(began), 2*time.Second)
		w.Release(lock)
	})
}

func TestTakeoverNeedsObservationIfOnlyOneClientHasMaxSkew(t *testing.T) {
	aDayAhead := lab.Wall(func() time.Time { return time.Now().Add(24 * time.Hour) })
	for name, cfg := range map[string]struct {
		holder, observer leasehold.Config
		on               []lab.Edit
	}{
		"only the holder has it":   {withMaxSkew(time.Second), lab.Config(), []lab.Edit{aDayAhead}},
		"only the observer has it": {lab.Config(), withMaxSkew(time.Second), nil},
	} {
		t.Run(name, func(t *testing.T) {
			withDeadHolder(t, cfg.holder, func(t *testing.T, w *lab.World, _ *leasehold.Lock) {
				lab.Elapse(time.Hour)
				began := time.Now()
				fresh, _ := w.Client(cfg.observer, cfg.on...)
				lab.WantErr(t, "first try", lab.ErrorOf(fresh.Acquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
				lock := w.Acquire(fresh, "job")
				lab.Want(t, "granted after", time.Since(began), 20*time.Second)
				w.Release(lock)
			})
		})
	}
}

// The first client writes the end of its lease to the attribute leaseEnds. Then software that does
// not update leaseEnds renews the same grant, so the old value stays in the record. Other clients
// must ignore this value.
func TestOutdatedLeaseEndInRecordDoesNotCauseTakeover(t *testing.T) {
	for name, keep := range map[string]func(t *testing.T, w *lab.World, g leasehold.Grant) (end func()){
		"a client without MaxSkew": func(t *testing.T, w *lab.World, g leasehold.Grant) func() {
			c, _ := w.Client(lab.Config())
			lock := w.Resume(c, g)
			return func() { w.Release(lock) }
		},
		"the Java client": func(t *testing.T, w *lab.World, _ leasehold.Grant) func() {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("3f9c1d2e-0b1a-4c5d-8e9f-001122334455")})
			return func() { w.Delete("job") }
		},
	} {
		t.Run("renewed by "+name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				first, _ := w.Client(withMaxSkew(time.Second))
				grant := w.Detach(w.Acquire(first, "job"))
				end := keep(t, w, grant)
				lab.Elapse(40 * time.Second)
				if w.Item("job")["leaseEnds"] == nil {
					t.Fatal("the lease end of the first client is gone: this test checks nothing")
				}
				fresh, _ := w.Client(withMaxSkew(time.Second))
				lab.WantErr(t, "TryAcquire despite an outdated lease end", lab.ErrorOf(fresh.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
				end()
			})
		})
	}
}

// endIn returns the lease end that is stored in the record of "job".
func endIn(t *testing.T, w *lab.World) time.Time {
	t.Helper()
	b, ok := w.Item("job")["leaseEnds"].(*types.AttributeValueMemberB)
	if !ok {
		t.Fatal("the record has no lease end")
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b.Value)))
}

func TestHolderStopsTrustingLockBeforeLeaseEndInRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		const margin, skew = 2 * time.Second, time.Second
		var pauses bool // if true, the process pauses for 5 s after the client's next read of the wall clock
		var on lab.Jumps
		c, _ := w.Client(withMaxSkew(skew), on.Edit, func(m *machine.Machine) {
			wall := m.Wall
			m.Wall = func() time.Time {
				at := wall()
				if pauses {
					pauses = false
					for _, clock := range []interface{ Add(int64) int64 }{&on.Mono, &on.Boot, &on.Wall} {
						clock.Add(int64(5 * time.Second))
					}
				}
				return at
			}
		})
		pauses = true
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		check := func(after string) {
			if pauses {
				t.Fatalf("%s does not read the wall clock: this test checks nothing", after)
			}
			if until, end := lock.TrustedUntil(), endIn(t, w); until.Add(margin + skew).After(end) {
				t.Errorf("after %s, trust ends only %v before the lease end in the record", after, end.Sub(until))
			}
		}
		check("a grant")
		pauses = true
		renew(w, lock)
		check("a renewal")
		grant := w.Detach(lock)
		pauses = true
		lock = w.Resume(c, grant)
		check("a resume")
		w.Release(lock)
	})
}

func TestLockContextEndsAtLeaseEndMinusMarginAndMaxSkew(t *testing.T) {
	for _, skew := range []time.Duration{0, 2 * time.Second} {
		withDeadHolder(t, withMaxSkew(skew), func(t *testing.T, _ *lab.World, died *leasehold.Lock) {
			began := time.Now()
			<-died.Context().Done()
			lab.Want(t, fmt.Sprint("trusted with a MaxSkew of ", skew), time.Since(began), 18*time.Second-skew)
			lab.Elapse(attempts.Limit) // let a renewal in flight end
		})
	}
}

func TestLockContextEndsBeforeTakeoverDespiteClockSkew(t *testing.T) {
	// This is the worst case: the holder's clock is behind by the holder's MaxSkew, and the
	// waiter's clock is ahead by the waiter's MaxSkew.
	const behind, ahead, margin = 3 * time.Second, time.Second, 2 * time.Second
	wrongBy := func(d time.Duration) lab.Edit {
		return lab.Wall(func() time.Time { return time.Now().Add(d) })
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(withMaxSkew(behind), wrongBy(-behind))
		lock := w.Acquire(holder, "job")
		began := time.Now()
		wire.SetFault(lab.Cut)
		ends := make(chan time.Duration, 1)
		context.AfterFunc(lock.Context(), func() { ends <- time.Since(began) })
		fresh, _ := w.Client(withMaxSkew(ahead), wrongBy(ahead))
		next := w.Acquire(fresh, "job")
		taken := time.Since(began)
		lab.Want(t, "time from the end of trust to the next grant", taken-<-ends, margin)
		w.Release(next)
	})
}

// For the head of a queue, the lease of a hand-over begins at one of the head's own reads. The
// former holder does not know the time of this read, so its hand-over must store no lease end.
// Otherwise another client could take the key over while the head trusts its lock.
func TestKeyIsNotTakenOverFromNewHolderIfHandOverWasDelayed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := withMaxSkew(100 * time.Millisecond)
		cfg.Lease = 6 * time.Second // the lease of a hand-over is half as long
		holder, wire := w.Client(cfg)
		head, headWire := w.Client(cfg)
		lock := w.Acquire(holder, "job")
		next := w.Queue(head, "job")
		lab.Elapse(time.Second)
		renew(w, lock) // the reply to the renewal shows the queue to the holder
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.HandsOver() {
				time.Sleep(2900 * time.Millisecond)
			}
			return r.Send()
		})
		headWire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() && !r.Sets("waiters") {
				// The head's first renewal would store a correct lease end in the record, so the
				// test drops this renewal.
				return lab.Cut(r)
			}
			return r.Send()
		})
		sent := time.Now()
		w.Release(lock)
		handed := <-next
		// The hand-over is now 3.1 s old by the former holder's clock.
		lab.Elapse(max(0, time.Until(sent.Add(3*time.Second+101*time.Millisecond))))
		fresh, _ := w.Client(cfg)
		if other, err := fresh.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("granted to %v while the head trusts its lock: %v, %v", other, handed.Err(), err)
		}
		headWire.SetFault(nil)
		w.Release(handed)
	})
}

// A hand-over has a short lease. The head of the queue trusts a handed-over lock for the length of
// this lease minus the margin and MaxSkew. If that leaves too little time, the head replaces the
// hand-over with a grant of its own.
func TestHandedOverLockStaysValidForAtLeast500Milliseconds(t *testing.T) {
	for _, skew := range []time.Duration{2100 * time.Millisecond, 2400 * time.Millisecond, 2600 * time.Millisecond} {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			cfg := withMaxSkew(skew)
			cfg.Lease = 6 * time.Second // the lease of a hand-over is half as long
			l := inOrderBehind(t, w, cfg, 1, cfg)
			w.Release(l.lock)
			next := <-l.got[0]
			left := time.Until(next.TrustedUntil())
			lab.WantRange(t, fmt.Sprint("trust with a MaxSkew of ", skew), left, lease.ShortestTrust, cfg.Lease)
			w.Release(next)
		})
	}
}

func TestNewRejectsInvalidOrUnsupportedMaxSkew(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*leasehold.Config)
		says   string
	}{
		"in a layout with expiry times": {func(c *leasehold.Config) { c.Layout = layout.DynamoDLM{} }, "set that of the layout"},
		"in another library's layout":   {func(c *leasehold.Config) { c.Layout = layout.AWSLabs{} }, "use layout native"},
		"too long for the lease":        {func(c *leasehold.Config) { c.Lease = 2 * time.Second; c.MaxSkew = 1500 * time.Millisecond }, "at least 500ms"},
		"negative":                      {func(c *leasehold.Config) { c.MaxSkew = -1 }, "negative"},
		"without a unit":                {func(c *leasehold.Config) { c.MaxSkew = 500 }, "nanoseconds"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withMaxSkew(time.Second)
			c.change(&cfg)
			_, err := leasehold.New(lab.New(t).DB, cfg)
			lab.WantText(t, "new", err, c.says)
			if unsupported := (*leasehold.UnsupportedError)(nil); (cfg.Layout != nil) != errors.As(err, &unsupported) {
				t.Errorf("%T: %v", err, err)
			}
		})
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(withMaxSkew(time.Second))
		lab.WantText(t, "a lease that leaves no trust", lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.WithLease(1600*time.Millisecond))), "MaxSkew, 1s")
		cfg := lab.Config()
		cfg.Margin = 15 * time.Second
		c, _ = w.Client(cfg)
		lab.WantText(t, "a margin that leaves no trust", lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.WithLease(time.Second))), "margin, 750ms")
	})
}

// Without MaxSkew, clients do not use the wall-clock times in records: only people and TTL do. So
// these times change neither when a holder stops trusting its lock, nor when a waiter takes it
// over.
func TestWallClockJumpsDoNotChangeTimesOfLossAndTakeover(t *testing.T) {
	const day = 24 * time.Hour
	for name, cfg := range lab.Leases() {
		// The function "course" returns when the trust of a holder ended and when a waiter took the
		// key over. After a minute, it cuts the holder off from the network. Every 700 ms it moves
		// the wall clocks of holder and waiter by the results of "step".
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
				"back and forth": func(i int) (_, _ time.Duration) {
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
