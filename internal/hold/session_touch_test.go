package hold_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// noTouch is a fault that makes every renewal of a lock's own record hang. It lets the
// renewals of the session pass.
func noTouch(r *lab.Request) (*http.Response, error) {
	if r.Renews() && !r.RenewsSession() {
		return lab.Cut(r)
	}
	return r.Send()
}

// patient makes a waiter poll rarely, for records that do not change for hours.
func patient(cfg leasehold.Config) leasehold.Config {
	cfg.PollMax = time.Minute
	return cfg
}

func TestLockWithOldRecordIsKeptWhileSessionIsRenewed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		wire.SetFault(noTouch)
		began := time.Now()
		for name, acquire := range map[string]func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error){
			"Acquire": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) { return c.Acquire(ctx, "job") },
			"AcquireAny": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
				return c.AcquireAny(ctx, leasehold.Keys("job"))
			},
			"AcquireAll": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lock, error) {
				group, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"))
				if err != nil {
					return nil, err
				}
				return group.Locks()[0], nil
			},
		} {
			waiter, _ := w.Client(patient(lab.Config()))
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Minute)
			if got, err := acquire(ctx, waiter); !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("%s after %v: %v, %v", name, time.Since(began), got, err)
			}
			cancel()
			if err := lock.Err(); err != nil {
				t.Fatalf("%v after the grant: %v", time.Since(began), err)
			}
		}
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestBreakIsNoticedAfterRecordWasRenewedLate(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		before := lab.Text(w.Item("job"), "recordVersionNumber")
		wire.SetFault(noTouch)
		lab.Elapse(3 * time.Hour)
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		if lab.Text(w.Item("job"), "recordVersionNumber") == before || lock.Err() != nil {
			t.Errorf("not touched since: %v", lock.Err())
		}
		if err := lock.Renew(t.Context(), leasehold.WithData([]byte("x"))); err != nil || string(lock.Record().Data) != "x" {
			t.Errorf("renew: %v, data %q", err, lock.Record().Data)
		}
		other, _ := w.Client(lab.Config())
		w.Break(other, lock, "")
		lab.Elapse(20 * time.Minute)
		if err := lock.Err(); reasonOf(err) != leasehold.LostBroken {
			t.Errorf("after a break: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestLockOfDeadSessionIsTakenOverDespiteFreshRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		lock := w.Acquire(holder, "job")
		if err := lock.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		wire.SetFault(lab.On(lab.Call.RenewsSession, lab.Cut))
		lab.Elapse(17 * time.Second)
		if err := lock.Renew(t.Context()); err != nil { // a renewal by the caller does not extend the trust
			t.Fatal(err)
		}
		lab.Elapse(2 * time.Second)
		if !errors.Is(lock.Err(), leasehold.ErrLost) {
			t.Errorf("believed in by its own record: %v", lock.Err())
		}
		waiter, _ := w.Client(lab.Config())
		began := time.Now()
		next := w.Acquire(waiter, "job")
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("taken over after %v", took)
		}
		w.Release(next)
		wire.SetFault(nil)
		_ = holder.Close(t.Context())
	})
}
