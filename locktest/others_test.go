package locktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// nothing is a function for Do that does no work.
func nothing(context.Context, *leasehold.Lock) error { return nil }

func TestHoldMethodOfEnvHoldsKeyUntilRelease(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		theirs := env.Hold("k", leasehold.WithData([]byte("d")))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		lab.WantErr(t, "acquire", lab.ErrorOf(locks.Acquire(ctx, "k")), leasehold.ErrHeld)
		release(t, theirs)
		lock := acquire(t, locks, "k")
		if string(lock.Record().Data) != "d" || lock.Token() <= theirs.Token() {
			t.Errorf("data %q, token %d after %d", lock.Record().Data, lock.Token(), theirs.Token())
		}
		release(t, lock)
	})
}

func TestUnrenewedLockFromHoldMethodOfEnvCanBeTakenOver(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		theirs := env.Hold("k", leasehold.WithoutRenewal(), leasehold.WithLease(time.Minute))
		began := time.Now()
		lock := acquire(t, locks, "k")
		if dead, ok := lock.TookOver(); !ok || dead.Owner != theirs.Record().Owner || time.Since(began) != time.Minute {
			t.Errorf("after %v, from %v, %v", time.Since(began), dead, ok)
		}
		release(t, lock)
	})
}

func TestHoldMethodOfEnvMakesTestFailAtOnceIfKeyIsHeld(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		env.Hold("k")
		began := time.Now()
		p.fails(t, func() { env.Hold("k") }, `hold "k"`, "holder-1/", "Steal")
		lab.WantTook(t, "failed after", began, 0, 0)
		p.fails(t, func() { env.Hold("") }, "the key is empty")
		p.fails(t, func() { env.Steal("") }, "the key is empty")
		p.end()
	})
}

func TestHolderNoticesStealAtNextRenewal(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		lock := acquire(t, locks, "k", leasehold.WithData([]byte("half done")))
		began := time.Now()
		stolen := env.Steal("k")
		if lock.Err() != nil || time.Since(began) > 0 {
			t.Errorf("the holder noticed after %v: %v", time.Since(began), lock.Err())
		}
		before, after := lock.Record(), stolen.Record()
		if after.Token != before.Token+1 || after.Grant == before.Grant || after.Version == before.Version || after.Owner == before.Owner ||
			string(after.Data) != "half done" || after.Released {
			t.Errorf("the record %+v became %+v", before, after)
		}
		if dead, ok := stolen.TookOver(); !ok || dead.Version != before.Version {
			t.Errorf("taken over from %v, %v", dead, ok)
		}
		<-lock.Context().Done()
		var lost *leasehold.LostError
		if !errors.As(context.Cause(lock.Context()), &lost) || lost.Reason != leasehold.LostReplaced || lost.By.Token != after.Token || time.Since(began) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), context.Cause(lock.Context()))
		}
		lab.WantErr(t, "acquire", lab.ErrorOf(locks.TryAcquire(t.Context(), "k")), leasehold.ErrHeld)
	})
}

func TestStealMethodOfEnvAcquiresBothFreeAndHeldKeys(t *testing.T) {
	lab.Variants(t, map[string]func(t *testing.T, env *locktest.Env, locks *leasehold.Client){
		"never held":             func(*testing.T, *locktest.Env, *leasehold.Client) {},
		"released":               func(t *testing.T, _ *locktest.Env, locks *leasehold.Client) { release(t, acquire(t, locks, "k")) },
		"held by Hold":           func(_ *testing.T, env *locktest.Env, _ *leasehold.Client) { env.Hold("k") },
		"stolen before":          func(_ *testing.T, env *locktest.Env, _ *leasehold.Client) { env.Steal("k") },
		"held by a dead process": func(_ *testing.T, env *locktest.Env, _ *leasehold.Client) { env.Hold("k", leasehold.WithoutRenewal()) },
		"held with longest lease": func(_ *testing.T, env *locktest.Env, _ *leasehold.Client) {
			env.Hold("k", leasehold.WithLease(1<<63-1), leasehold.WithoutRenewal())
		},
		"holder disconnected": func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
			acquire(t, locks, "k")
			env.Disconnect(locks)
		},
		"all clients disconnected": func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
			acquire(t, locks, "k")
			env.Disconnect()
		},
	}, func(t *testing.T, prepare func(t *testing.T, env *locktest.Env, locks *leasehold.Client)) {
		withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
			prepare(t, env, locks)
			began := time.Now()
			lock := env.Steal("k")
			if time.Since(began) > time.Microsecond || lock.Err() != nil {
				t.Errorf("after %v: %v", time.Since(began), lock.Err())
			}
			env.Reconnect()
			if r, err := env.Client(leasehold.Config{}).Get(t.Context(), "k"); err != nil || r.Grant != lock.Record().Grant || r.Released {
				t.Errorf("the record: %+v, %v", r, err)
			}
			env.Disconnect() // now no process can reach the lock table
		})
	})
}

func TestStealMethodOfEnvEndsOnlyOneLockOfSharedLease(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		locks := env.Client(leasehold.Config{SharedLease: true})
		one, other := acquire(t, locks, "k"), acquire(t, locks, "l")
		env.Steal("k")
		lab.WantErr(t, "commit", one.Commit(t.Context(), nil), leasehold.ErrLost)
		lab.WantErr(t, "the other lock", other.Commit(t.Context(), nil), nil)
		release(t, other)
	})
}

func TestStealMethodOfEnvSucceedsDespiteConcurrentRenewals(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		for range 20 {
			lock := acquire(t, locks, "k")
			renewing := make(chan struct{})
			go func() {
				defer close(renewing)
				// The holder renews again and again, so that the record's version changes between the read
				// and the write of Steal.
				for err := error(nil); err == nil; {
					err = lock.Renew(t.Context())
				}
			}()
			stolen := env.Steal("k")
			<-renewing
			lab.WantErr(t, "the holder", lock.Err(), leasehold.ErrLost)
			lab.WantErr(t, "the thief", stolen.Commit(t.Context(), nil), nil)
			release(t, stolen)
		}
	})
}

func TestStealMethodOfEnvMakesTestFailIfRecordIsDamaged(t *testing.T) {
	probed(t, func(t *testing.T, p *probe, env *locktest.Env) {
		put(t, env, "k")
		p.fails(t, func() { env.Steal("k") }, `steal "k"`)
		p.end()
	})
}
