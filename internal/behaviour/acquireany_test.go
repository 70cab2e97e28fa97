package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAcquireAnyAcquiresFirstFreeKeyInGivenOrder(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, wire := w.Client(lab.Config())
		is := func(want string) {
			t.Helper()
			lock := acquireAny(t.Context(), w, b, leasehold.Keys("b", "a"))
			lab.Want(t, "first key in the order given", lock.Key().Partition, want)
			w.Release(lock)
		}
		is("b")
		lab.Want(t, "requests", lab.Ops(wire.Sent()), []string{"UpdateItem", "UpdateItem"})
		other := w.Acquire(a, "b")
		is("a")
		w.Release(other)
	})
}

func TestAcquireAnyReadsAllKeysIfFirstKeyIsHeld(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		w.AcquireAll(a, leasehold.Keys("a", "b", "c"))
		b, wire := w.Client(lab.Config())
		lock := acquireAny(t.Context(), w, b, leasehold.Keys("a", "b", "c", "d", "e"))
		lab.Want(t, "requests", lab.Ops(wire.Sent()), []string{"UpdateItem", "BatchGetItem", "UpdateItem"})
		lab.Want(t, "key", lock.Key().Partition, "d")
	})
}

func TestAcquireAnyWithNoWaitSkipsHeldKeys(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		w.AcquireAll(a, leasehold.Keys("a", "b"))
		b, _ := w.Client(lab.Config())
		lock := acquireAny(t.Context(), w, b, leasehold.Keys("a", "b", "c", "d"), leasehold.NoWait())
		lab.Want(t, "key", lock.Key().Partition, "c")
	})
}

func TestAcquireAnyTrustsHandOverForMostOfItsLease(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		keys := leasehold.Keys("a", "b", "c")
		others := w.AcquireAll(a, keys)
		b, wire := w.Client(lab.Config())
		granted := begin(func() *leasehold.Lock { return acquireAny(t.Context(), w, b, keys) })
		lab.Elapse(time.Minute) // longer than the lease of a hand-over: a lease that began with the call would have expired
		wire.Sent()
		w.Release(others.Locks()[0])
		lock := <-granted
		lab.WantRange(t, "trust", time.Until(lock.TrustedUntil()), handOverLease*3/4, handOverLease)
		lab.Want(t, "grants that replace the hand-over", lab.Count(wire.Sent(), lab.Call.Grants), 0)
	})
}

// Forty clients contend for ten keys, and each client is in the queues of only two keys. A client
// reads these two keys often, and the other keys rarely. If a client read all keys equally often, a
// grant would cost 144 read units.
func TestAcquireAnyCostsFewCapacityUnitsUnderContention(t *testing.T) {
	lab.SkipUnderRace(t, "counts capacity units")
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("permit-", i))
	}
	lasts := func(*rand.Rand) time.Duration { return 100 * time.Millisecond }
	c := contend(t, lab.Config(), leasehold.Keys(names...), 40, lab.Cases(1000, 400), lasts, uneven)
	use := c.works.Seconds() / c.each.Seconds() / float64(len(names))
	if use < 0.75 || c.used.Write > 9 || c.used.Read > 60 {
		t.Errorf("keys are held %.0f %% of the time, and a grant costs %.1f write and %.1f read units; want at least 75 %%, and at most 9 and 60",
			100*use, c.used.Write, c.used.Read)
	}
}

func TestAcquireAnyPollsAllKeysWithOneRequest(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, wire := w.Client(lab.Config())
		keys := leasehold.Keys("a", "b", "c")
		others := w.AcquireAll(a, keys)
		granted := begin(func() *leasehold.Lock { return acquireAny(t.Context(), w, b, keys) })
		lab.Elapse(30 * time.Second)
		sent := wire.Sent()
		for i, c := range sent {
			if i >= 3 && c.Op != "BatchGetItem" && !joins(c) {
				t.Fatalf("request %d is %s", i, c.Op)
			}
		}
		lab.WantRange(t, "reads in 30 s, two a second at most", len(sent), 30, 300)
		began := time.Now()
		w.Release(others.Locks()[1])
		lock := <-granted
		lab.WantTook(t, "granted after", began, 0, 1100*time.Millisecond)
		lab.Want(t, "key", lock.Key().Partition, "b")
		w.Release(lock)
		w.Release(others)
	})
}

func TestAcquireAnyTakesOverKeyOfDeadHolder(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, wire *lab.Wire) {
		dead, other := w.Acquire(a, "b"), holds(w, "a")
		wire.SetFault(lab.Cut)
		b, _ := w.Client(lab.Config())
		began := time.Now()
		lock := acquireAny(t.Context(), w, b, leasehold.Keys("a", "b"))
		lab.WantTook(t, "granted after", began, 20*time.Second, 20*time.Second+100*time.Millisecond)
		if _, took := lock.TookOver(); !took || lock.Key().Partition != "b" {
			t.Errorf("%v, taken over: %v", lock.Key(), took)
		}
		w.Release(lock)
		w.Release(other)
		_ = dead.Release(t.Context())
	})
}

func TestAcquireAnyAcquiresOnlyOneKeyDespiteLostReply(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		lock := acquireAny(t.Context(), w, c, leasehold.Keys("a", "b"))
		lab.Want(t, "held", w.HeldAmong(leasehold.Keys("a", "b")), []string{lock.Key().Partition})
		w.Release(lock)
	})
}

func TestErrorOfAcquireAnyContainsFirstGivenKey(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, wire := w.Client(lab.Config())
		others := w.AcquireAll(a, leasehold.Keys("a", "b"))
		_, err := b.AcquireAny(t.Context(), leasehold.Keys("b", "a"), leasehold.NoWait())
		if is := as[*leasehold.HeldError](err); is == nil || is.Key.Partition != "b" || is.Holder.Grant == "" {
			t.Errorf("error %v", err)
		}
		lab.Want(t, "requests", lab.Ops(wire.Sent()), []string{"UpdateItem", "UpdateItem"})
		w.Release(others)
	})
}

func TestCallWithNoWaitFailsAfterTenSecondsOfThrottling(t *testing.T) {
	oneClient(t, func(t *testing.T, _ *lab.World, c *leasehold.Client, wire *lab.Wire) {
		wire.SetFault(lab.Refused("ThrottlingException"))
		for name, try := range map[string]func() error{
			"AcquireAll": func() error {
				return lab.ErrorOf(c.AcquireAll(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait()))
			},
			"AcquireAny": func() error {
				return lab.ErrorOf(c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait()))
			},
		} {
			began := time.Now()
			err := try()
			var op *leasehold.OpError
			if took := time.Since(began); !errors.As(err, &op) || took < 10*time.Second || took > 16*time.Second {
				t.Errorf("%s: after %v: %v", name, took, err)
			}
		}
	})
}

func TestAcquireAnySkipsKeyWithDamagedRecord(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		w.Put(lab.Key("damaged"))
		lock := acquireAny(t.Context(), w, c, leasehold.Keys("damaged", "a"))
		w.Release(lock)
		if _, err := c.AcquireAny(t.Context(), leasehold.Keys("damaged", "none"), leasehold.IfExists()); !errors.As(err, new(*leasehold.RecordError)) || !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		lab.WantAs[*leasehold.RecordError](t, "acquire all", lab.ErrorOf(c.AcquireAll(t.Context(), leasehold.Keys("a", "damaged"))))
		wantFree(w, leasehold.Keys("a"))
	})
}

func TestAcquireAnyWithContextOfLockSkipsKeyOfThatLock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		outer := w.Acquire(c, "a")
		lock := acquireAny(outer.Context(), w, c, leasehold.Keys("a", "b"))
		lab.Want(t, "key", lock.Key().Partition, "b")
		w.Release(lock)
		lock = acquireAny(outer.Context(), w, c, leasehold.Keys("a", "b"), leasehold.Reentrant())
		lab.Want(t, "token of the shared grant", lock.Token(), outer.Token())
		w.Release(lock)
		lab.WantErr(t, "outer handle", outer.Err(), nil)
		w.Release(outer)
	})
}

func TestAcquireAnyWithNoWaitTakesOverKeyOfDeadSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		held := w.AcquireAll(holder, leasehold.Keys("x", "y"))
		for _, cfg := range []leasehold.Config{lab.Config(), lab.SharedConfig()} {
			c, _ := w.Client(cfg)
			lab.WantErr(t, "while the session is live", lab.ErrorOf(c.AcquireAny(t.Context(), leasehold.Keys("x", "y"), leasehold.NoWait())), leasehold.ErrHeld)
			_ = c.Close(t.Context())
		}
		c, _ := w.Client(lab.SharedConfig())
		_, _ = c.AcquireAny(t.Context(), leasehold.Keys("x", "y"), leasehold.NoWait())
		wire.SetFault(lab.Cut)
		lab.Elapse(5 * time.Second)
		_, _ = c.AcquireAny(t.Context(), leasehold.Keys("x", "y"), leasehold.NoWait())
		lab.Elapse(20 * time.Second)
		lock := acquireAny(t.Context(), w, c, leasehold.Keys("x", "y"), leasehold.NoWait())
		lab.WantErr(t, "the dead holder's group", held.Err(), leasehold.ErrLost)
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestAcquireAnyContinuesAfterFailedTakeoverOfOneKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		dead, deadWire := w.Client(lab.SharedConfig())
		c, wire := w.Client(lab.Config())
		lost, other := w.Acquire(dead, "a"), holds(w, "b")
		deadWire.SetFault(lab.Cut)
		marked := false
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Op == "UpdateItem" && strings.Contains(string(r.Body), "leasehold/session/") {
				marked = true
				return lab.Cut(r)
			}
			return r.Send()
		})
		ctx := w.Within(5 * time.Minute)
		granted := begin(func() *leasehold.Lock { return acquireAny(ctx, w, c, leasehold.Keys("a", "b")) })
		lab.Elapse(time.Minute)
		if !marked || lost.Err() == nil {
			t.Error("the client sent no mark for the dead session, or the lock is not lost")
		}
		began := time.Now()
		w.Release(other)
		lock := <-granted
		lab.WantTook(t, "a free key was granted after", began, 0, 15*time.Second) // the limit leaves time for a few requests that get no reply
		w.Release(lock)
		_ = dead.Close(t.Context())
	})
}

func TestAcquireAnyWithNoWaitReturnsWithin30Seconds(t *testing.T) {
	for name, silent := range map[string]func(r *lab.Request) bool{
		"no reply for b": func(r *lab.Request) bool { return strings.Contains(string(r.Body), `"S":"b"`) },
		"no reply":       func(r *lab.Request) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
				b, wire := w.Client(lab.Config())
				other := w.Acquire(a, "a")
				freed := false
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					switch {
					case freed && silent(r):
						return lab.Cut(r)
					case r.Grants() && !freed:
						freed = true
						res, err := lab.ShowNothing(r)
						// Client a releases the key "a" after DynamoDB has rejected this grant of
						// client b, and before client b reads the record.
						w.Release(other)
						return res, err
					}
					return r.Send()
				})
				began := time.Now()
				lock, err := b.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.NoWait())
				lab.WantTook(t, "AcquireAny took", began, 0, 30*time.Second)
				if lock != nil { // AcquireAny has returned a lock
					if lock.Key().Partition != "a" || name == "no reply" {
						t.Errorf("granted %v", lock.Key())
					}
				} else if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || !strings.Contains(err.Error(), "gave up after 1") || name != "no reply" {
					t.Errorf("error %v", err)
				}
				_ = b.Close(t.Context())
			})
		})
	}
}

func TestAcquireAnyReturnsErrDeadlockIfWaitingCouldCauseDeadlock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, wire := w.Client(lab.Config())
		others := w.AcquireAll(a, leasehold.Keys("a", "b", "z"))
		group := w.AcquireAll(b, leasehold.Keys("m", "n"))
		wire.Sent()
		ctx, cancel := context.WithTimeout(group.Context(), time.Hour)
		defer cancel()
		for _, keys := range [][]leasehold.Key{
			leasehold.Keys("a"), leasehold.Keys("b", "a"), leasehold.Keys("a", "m"), leasehold.Keys("n", "m"), // client b itself holds the keys n and m; client a holds the keys a and b
		} {
			lab.WantErr(t, fmt.Sprint(keys), lab.ErrorOf(b.AcquireAny(ctx, keys)), leasehold.ErrDeadlock)
		}
		wantSent(t, wire, 0)
		lab.WantErr(t, "NoWait ignores the order of keys", lab.ErrorOf(b.AcquireAny(ctx, leasehold.Keys("a", "b"), leasehold.NoWait())), leasehold.ErrHeld)

		// The call cannot cause a deadlock at key z: client b holds no key that sorts after z. So
		// the call may wait. Once the keys a and z are free, it may acquire either of them.
		granted := begin(func() *leasehold.Lock { return acquireAny(ctx, w, b, leasehold.Keys("a", "z")) })
		lab.Elapse(time.Minute)
		w.Release(others)
		w.Release(<-granted)
		w.Release(group)
	})
}

func TestAcquireAnyReturnsSoonIfUndoOfOtherGrantGetsNoReply(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, other *leasehold.Client, _ *lab.Wire) {
		w.Acquire(other, "a")
		cfg := lab.Config()
		cfg.ReleaseGrace = time.Second
		c, wire := w.Client(cfg)
		sent := 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !slices.Equal(r.Keys(), []string{"a"}) {
				return r.Send()
			}
			switch sent++; sent {
			case 1: // the reply to the grant of key a is lost, so the outcome of that grant is unknown
				_, _ = r.Send()
				return nil, lab.ErrReset
			case 2: // this reply shows that key a was not granted
				return r.Send()
			}
			return lab.Cut(r) // the request that undoes the grant of key a gets no reply
		})
		began := time.Now()
		lock := acquireAny(t.Context(), w, c, leasehold.Keys("a", "b"), leasehold.WithoutRenewal())
		lab.Want(t, "key", lock.Key().Partition, "b")
		// AcquireAny sends a request to undo its grant of key a, and gets no reply. AcquireAny must
		// not wait long for this reply, because it has already acquired key b: without renewal, the
		// lease of key b soon expires.
		lab.WantTook(t, "AcquireAny took", began, 0, cfg.ReleaseGrace+100*time.Millisecond)
		synctest.Wait()
		lab.Want(t, "requests for the other key", sent, 3)
		w.Release(lock)
	})
}
