package acquire_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// These tests make calls with NoWait for keys whose holder appears dead.

const night = 24 * time.Hour

// took calls fn. It returns how long fn took, and the error of fn.
func took(fn func() error) (time.Duration, error) {
	began := time.Now()
	err := fn()
	return time.Since(began), err
}

// granted calls the given function, which must return a lock, and then releases that lock. It
// returns how long the call and the release took together.
func granted(w *lab.World, call func() (*leasehold.Lock, error)) time.Duration {
	w.T.Helper()
	began := time.Now()
	w.Release(lab.Must(call())(w.T))
	return time.Since(began)
}

// refusedAtOnce calls Acquire with NoWait for the key. It fails the test unless the call returns
// ErrHeld at once.
func refusedAtOnce(w *lab.World, c *leasehold.Client, key, what string) {
	w.T.Helper()
	d, err := took(func() error { return lab.ErrorOf(c.Acquire(w.T.Context(), key, leasehold.NoWait())) })
	if !errors.Is(err, leasehold.ErrHeld) || d != 0 {
		w.T.Errorf("%s: %v after %v", what, err, d)
	}
}

func TestTryAcquireTakesOverFromDeadHolder(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		w.LeavesHeld(cfg, night, "job")
		c, _ := w.Client(lab.Config())
		if d, err := took(func() error {
			return lab.ErrorOf(c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead()))
		}); !errors.Is(err, leasehold.ErrHeld) || d != 0 {
			t.Errorf("TryAcquire with NoWaitEvenIfDead: %v after %v", err, d)
		}
		b, _ := w.Client(lab.Config()) // client of another process; it has not observed the holder yet
		lab.Want(t, "granted after", granted(w, func() (*leasehold.Lock, error) { return b.TryAcquire(t.Context(), "job") }), 20*time.Second)
	})
}

func TestAcquireTakesOverSoonerAfterFailedTryAcquire(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), night, "job")
		c, _ := w.Client(lab.Config())
		lab.WantErr(t, "TryAcquire", lab.ErrorOf(c.TryAcquire(t.Context(), "job", leasehold.NoWaitEvenIfDead())), leasehold.ErrHeld)
		lab.Elapse(15 * time.Second)
		acquire := func() (*leasehold.Lock, error) { return c.Acquire(t.Context(), "job", leasehold.NoWait()) }
		lab.Want(t, "granted after", granted(w, acquire), 5*time.Second)
	})
}

func TestNonBlockingAcquireFailsIfHolderMayBeLive(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		_, _, lock := w.Holding(cfg)
		lab.Elapse(10 * time.Minute)
		c, _ := w.Client(lab.Config())
		refusedAtOnce(w, c, "job", "a holder that renews")
		w.Release(lock)
		// A holder's last renewal comes at most five seconds before its death. So if a holder
		// died less than 15 s ago, its lease of 20 s has not expired yet.
		w.LeavesHeld(cfg, 15*time.Second-time.Millisecond, "dies")
		refusedAtOnce(w, c, "dies", "a holder that died just now")
		lab.Elapse(time.Minute) // waits until the client of the dead holder has noticed that it lost the lock
	})
}

func TestWrongWallClockDoesNotCauseTakeover(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		_, _, lock := w.Holding(cfg)
		ahead, behind := &lab.Jumps{}, &lab.Jumps{}
		ahead.Wall.Store(int64(time.Hour))
		c, _ := w.Client(lab.Config(), ahead.Edit)
		d, err := took(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.NoWait())) })
		if !errors.Is(err, leasehold.ErrHeld) || d == 0 || d > 7*time.Second { // the call may have to wait for the next renewal, and then for its own next poll
			t.Errorf("a clock that is ahead: %v after %v", err, d)
		}
		lab.WantErr(t, "the holder", lock.Err(), nil)
		w.Release(lock)
		w.LeavesHeld(cfg, time.Hour, "dies")
		behind.Wall.Store(int64(-2 * time.Hour))
		c, _ = w.Client(lab.Config(), behind.Edit)
		refusedAtOnce(w, c, "dies", "a clock that is behind")
	})
}

// All three wall clocks are an hour ahead, so every holder appears dead. Once one client has taken
// the key over, the others see a new version. They must then return ErrHeld at once, without
// observing the new holder for a lease.
func TestOnlyOneOfThreeNonBlockingCallsTakesOverKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), night, "job")
		ahead := &lab.Jumps{}
		ahead.Wall.Store(int64(time.Hour))
		var ran atomic.Int32
		var tries sync.WaitGroup
		for range 3 {
			c, _ := w.Client(lab.Config(), ahead.Edit)
			tries.Go(func() {
				began := time.Now()
				lock, err := c.Acquire(t.Context(), "job", leasehold.NoWait())
				switch {
				case err == nil:
					ran.Add(1)
					time.Sleep(time.Minute)
					w.Release(lock)
				case !errors.Is(err, leasehold.ErrHeld) || time.Since(began) > 27*time.Second:
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		}
		tries.Wait()
		lab.Want(t, "grants", ran.Load(), 1)
	})
}

func TestNonBlockingAcquireAllFailsIfAnyHolderIsLive(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"no fault":                 nil,
		"first grant is throttled": lab.Once(lab.Call.Grants, lab.Throttled),
		"reply to a grant is lost": lab.Once(lab.Call.Grants, lab.LoseReply),
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		w.LeavesHeld(lab.Config(), night, "a", "b")
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "c")
		keys := leasehold.Keys("a", "b", "c")
		all := func() error {
			c, wire := w.Client(lab.Config())
			wire.SetFault(fault)
			g, err := c.AcquireAll(t.Context(), keys, leasehold.NoWait())
			if err == nil {
				w.Release(g)
			}
			return err
		}
		if d, err := took(all); !errors.Is(err, leasehold.ErrHeld) || d != 0 {
			t.Errorf("one holder is live: %v after %v", err, d)
		}
		w.Release(lock)
		if d, err := took(all); err != nil || d > 22*time.Second {
			t.Errorf("all holders are dead: %v after %v", err, d)
		}
	})
}

// The client has abandoned a grant of "b", which DynamoDB has applied. So the record shows a holder
// of "b", but no caller holds the key.
func TestNonBlockingAcquireAllTakesOverOwnAbandonedGrant(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), night, "a")
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				return lab.Unheard(r)
			}
			return lab.Cut(r)
		})
		lab.WantFailed(t, "Acquire", lab.ErrorOf(c.Acquire(w.Within(time.Second), "b")))
		lab.Elapse(10 * time.Second)
		wire.SetFault(nil)
		w.Release(w.AcquireAll(c, leasehold.Keys("a", "b"), leasehold.NoWait()))
	})
}

// The caller's clock is ahead, so both holders appear dead. While the call observes the holder of
// "a", the session of the holder of "b" is renewed, and "b" is released.
func TestNonBlockingAcquireAllReadsKeyAgainAfterObservation(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), night, "a")
		s, _ := w.Client(lab.SharedConfig())
		b, _ := w.Acquire(s, "b"), w.Acquire(s, "c")
		ahead := &lab.Jumps{}
		ahead.Wall.Store(int64(time.Hour))
		c, _ := w.Client(lab.Config(), ahead.Edit)
		time.AfterFunc(10*time.Second, func() { w.Release(b) })
		w.Release(w.AcquireAll(c, leasehold.Keys("a", "b"), leasehold.NoWait()))
		_ = s.Close(t.Context())
	})
}

func TestNonBlockingAcquireAllAcquiresKeysOfClosedClient(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, _ := w.Client(cfg)
		w.AcquireAll(c, leasehold.Keys("a", "b"))
		lab.OK(t, c.Close(t.Context()))
		other, _ := w.Client(lab.Config())
		w.Release(w.AcquireAll(other, leasehold.Keys("a", "b"), leasehold.NoWait()))
	})
}

func TestAcquireAnyTakesOverLockOfDeadHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.Config(), night, "dead")
		a, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "lives")
		c, _ := w.Client(lab.Config())
		d := granted(w, func() (*leasehold.Lock, error) {
			l, err := c.AcquireAny(t.Context(), leasehold.Keys("lives", "dead"), leasehold.NoWait())
			if err == nil && l.Key().Partition != "dead" {
				t.Errorf("granted %v", l.Key())
			}
			return l, err
		})
		lab.Want(t, "granted after", d, 20*time.Second)
		w.Release(lock)
	})
}

func TestAcquireDuringOutageDoesNotTakeOverLockOfSameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.OutageConfig())
		lock := w.Resume(a, w.Detach(w.Acquire(a, "job"))) // the client's local queue gives the turn of the key to the resumed lock
		wire.SetFault(lab.On(lab.Call.Renews, lab.Out))
		lab.Elapse(time.Minute)
		refusedAtOnce(w, a, "job", "a lock that its own client holds")
		lab.WantErr(t, "the lock", lock.Err(), nil)
		wire.SetFault((*lab.Request).Send)
		w.Release(lock)
	})
}

// If the holder appears dead, even a call with NoWait waits until the holder's lease has expired.
func TestOptionNoWaitLimitsAcquireTo36SecondsIfRequestsFail(t *testing.T) {
	type row struct {
		fails   func(lab.Call) bool
		granted bool
	}
	lab.Each(t, map[string]row{
		"all": {func(lab.Call) bool { return true }, false}, "reads": {lab.Call.Reads, true}, "grants": {lab.Call.Grants, false},
	}, func(t *testing.T, w *lab.World, r row) {
		w.LeavesHeld(lab.Config(), night, "job")
		c, wire := w.Client(lab.Config())
		met := false // met is true after the first request, which is always answered
		wire.SetFault(lab.On(func(c lab.Call) bool { defer func() { met = true }(); return met && r.fails(c) }, lab.Cut))
		d, err := took(func() error {
			lock, err := c.Acquire(t.Context(), "job", leasehold.NoWait())
			if err == nil {
				defer w.Release(lock)
			}
			return err
		})
		if (err == nil) != r.granted || d < 20*time.Second || d > 36*time.Second {
			t.Errorf("%v after %v", err, d)
		}
		wire.SetFault((*lab.Request).Send)
		lab.Elapse(time.Minute) // waits until the requests that the call left in flight have timed out
	})
}

// One dead client holds 20 keys under its session.
func TestNonBlockingCallForManyKeysReadsSessionRowRarely(t *testing.T) {
	type row struct {
		all   bool
		fault lab.Fault // of the reads of the session's row
		most  int       // largest number of these reads
	}
	lab.Each(t, map[string]row{
		"any, answered":   {false, lab.Far(10 * time.Millisecond), 100},
		"any, unanswered": {false, lab.Cut, 4}, // each read takes three seconds, and the call gives up after ten
		"all, unanswered": {true, lab.Cut, 4},
	}, func(t *testing.T, w *lab.World, r row) {
		keys, names := lab.ManyKeys(20), []string(nil)
		for _, k := range keys {
			names = append(names, k.Partition)
		}
		w.LeavesHeld(lab.SharedConfig(), night, names...)
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.On(isGet, r.fault))
		d, _ := took(func() error {
			if r.all {
				return lab.ErrorOf(c.AcquireAll(t.Context(), keys, leasehold.NoWait()))
			}
			return lab.ErrorOf(c.AcquireAny(t.Context(), keys, leasehold.NoWait()))
		})
		lab.WantRange(t, "time", d, 12*time.Second, 21*time.Second)
		lab.WantRange(t, "reads", lab.Count(wire.Sent(), isGet), 4, r.most)
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestTryAcquireTakesOverInEveryLayout(t *testing.T) {
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) {
			l := lab.Must(layout.Parse(name))(t)
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				w.LeavesHeld(cfg, night, "job")
				b, _ := w.Client(cfg)
				d := granted(w, func() (*leasehold.Lock, error) { return b.TryAcquire(t.Context(), "job") })
				if byClock := l.Capabilities().Expiry == layout.WallClock; byClock != (d == 0) || d > 21*time.Second {
					t.Errorf("granted after %v", d)
				}
			})
		})
	}
}

func TestTryAcquireFailsIfTimeOfHoldersRenewalIsUnknown(t *testing.T) {
	lab.InLayout(t, layout.AWSLabs{}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		a, _, lock := w.Holding(cfg)
		w.Release(lock)
		w.Update("job", map[string]types.AttributeValue{"isReleased": nil, "ownerName": lab.Str("java-host"),
			"leaseDuration": lab.Str("20000"), "recordVersionNumber": lab.Str("3f9c1d2e-0b1a-4c5d-8e9f-001122334455")})
		lab.Elapse(night)
		refusedAtOnce(w, a, "job", "a record of the Java client")
	})
}

func TestTryAcquireTakesOverIfSessionRowIsMissing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.LeavesHeld(lab.SharedConfig(), night, "job")
		w.Delete(w.Sessions()[0])
		c, _ := w.Client(lab.Config())
		lab.Want(t, "granted after", granted(w, func() (*leasehold.Lock, error) { return c.TryAcquire(t.Context(), "job") }), 20*time.Second)
	})
}
