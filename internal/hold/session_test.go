package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestOneRequestRenewsAllLocksOfSession(t *testing.T) {
	locks := lab.Cases(10_000, 1_000)
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, holderWire := w.Client(lab.SharedConfig())
		var first *leasehold.Lock
		for i := range locks {
			lock := w.Acquire(holder, fmt.Sprint("lock/", i))
			if i == 0 {
				first = lock
			}
		}
		holderWire.Sent()
		lab.Elapse(60 * time.Second) // three leases
		sent := holderWire.Sent()
		for _, c := range sent {
			if !c.RenewsSession() {
				t.Fatalf("sent a %s, which does not renew the session: %s", c.Op, c.Body)
			}
		}
		lab.WantRange(t, "renewals in 60 s", len(sent), 11, 13)

		// The holder dies. Then another client acquires many of the holder's locks, each by a
		// separate call.
		cfg := lab.SharedConfig()
		cfg.PollMax = 5 * time.Second
		heir, _ := w.Client(cfg)
		holderWire.SetFault(lab.Cut)
		died := time.Now()
		lastRenewed := died // the session was last renewed at this time or earlier
		var wg sync.WaitGroup
		var mu sync.Mutex
		earliest, latest := time.Hour, time.Duration(0)
		for i := range min(locks/4, 500) {
			wg.Go(func() {
				lock := w.Acquire(heir, fmt.Sprint("lock/", i))
				mu.Lock()
				defer mu.Unlock()
				earliest, latest = min(earliest, time.Since(lastRenewed)), max(latest, time.Since(died))
				if dead, ok := lock.TookOver(); !ok || dead.Token >= lock.Token() {
					t.Errorf("lock %d took over %v", i, dead)
				}
			})
		}
		wg.Wait()
		// The waiters began to observe the session's row after the death of the holder. Before a
		// takeover, they must have observed for a whole lease of 20 s that the session is not
		// renewed.
		if earliest < 20*time.Second || latest > 30*time.Second {
			t.Errorf("taken over from %v to %v after the death of the holder", earliest, latest)
		}
		lab.WantErr(t, "lock of the dead holder", first.Err(), leasehold.ErrLost)
		lab.WantErr(t, "close", heir.Close(t.Context()), nil)
	})
}

func TestRecordUnderSessionIsRenewedWithinTwentyMinutes(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Holding(lab.SharedConfig())
		lab.Want(t, "leaseDuration in ms", lab.Text(w.Item("job"), "leaseDuration"), "3600000")
		before := lab.Text(w.Item("job"), "recordVersionNumber")
		lab.Elapse(20 * time.Minute)
		lab.Want(t, "record has a new version", lab.Text(w.Item("job"), "recordVersionNumber") != before, true)
		lab.Elapse(3 * time.Hour)
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestExpiryWarningIsGivenAgainInSecondOutage(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		given := make(chan time.Duration, 9)
		lock := w.Acquire(c, "job", leasehold.WithExpiryWarning(9*time.Second, func(l *leasehold.Lock) {
			given <- time.Until(l.TrustedUntil())
		}))
		for range 2 {
			wire.SetFault(lab.Cut)
			lab.Elapse(10 * time.Second)
			wire.SetFault(nil)
			lab.Elapse(6 * time.Second)
		}
		lab.Want(t, "warnings in two outages", len(given), 2)
		lab.WantRange(t, "trust left at the warning", <-given, 8*time.Second, 9*time.Second)
		lab.WantErr(t, "lock", lock.Err(), nil)
		_ = c.Close(t.Context())
	})
}

func TestOnlyOneSessionRowRemainsIfReplyToItsCreationIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		lock := w.Acquire(c, "job")
		lab.Elapse(time.Second)
		if rows := w.Sessions(); len(rows) != 1 || !strings.HasSuffix(lock.Record().Owner, strings.TrimPrefix(rows[0], "leasehold/session")) {
			t.Errorf("sessions %q, owner %s", rows, lock.Record().Owner)
		}
		_ = c.Close(t.Context())
	})
}

func TestExpiredSessionIsMarkedDeadWhenNextOneBegins(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "a")
		row := w.Sessions()[0]
		wire.SetFault(lab.Cut)
		lab.Elapse(30 * time.Second)
		wire.SetFault(nil)
		lock := w.Acquire(c, "b")
		lab.Elapse(time.Second)
		if item := w.Item(row); lab.Text(item, "dead") != "1" || item["expiresAt"] == nil {
			t.Errorf("the old session is not marked dead, or its row has no TTL: %v", item)
		}
		lab.WantErr(t, "lock", lock.Err(), nil)
		_ = c.Close(t.Context())
	})
}

func TestLockIsNotGrantedUnderExpiredSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		cfg.Lease = 4 * time.Second
		c, wire := w.Client(cfg)
		w.Acquire(c, "other")
		former := w.Sessions()[0]
		late := lab.Once(func(c lab.Call) bool { return c.Grants() && !strings.Contains(string(c.Body), "leasehold/session/") }, lab.Slow(2900*time.Millisecond))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.RenewsSession() && strings.Contains(string(r.Body), former) {
				return lab.Cut(r)
			}
			return late(r)
		})
		lab.Elapse(2 * time.Second)
		lock := w.Acquire(c, "job")
		if err := lock.Err(); err != nil || strings.HasSuffix(lock.Record().Owner, strings.TrimPrefix(former, "leasehold/session")) {
			t.Errorf("granted under the expired session, or lost: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

// noTouch is a fault that drops renewals of a lock's own record. All other requests, such as
// renewals of the session, are answered.
func noTouch(r *lab.Request) (*http.Response, error) {
	if r.Renews() && !r.RenewsSession() {
		return lab.Cut(r)
	}
	return r.Send()
}

func TestRenewedSessionKeepsLockHeldAfterLeaseInRecordExpires(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire, lock := w.Holding(lab.SharedConfig())
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
			if lab.IsQuick() && name != "AcquireAny" { // each wait of 70 minutes takes seconds
				continue
			}
			cfg := lab.Config()
			cfg.PollMax = time.Minute // long pauses between polls, so that a test of many hours has few steps
			waiter, _ := w.Client(cfg)
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Minute)
			if got, err := acquire(ctx, waiter); !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("%s after %v: %v, %v", name, time.Since(began), got, err)
			}
			cancel()
			lab.WantErr(t, "lock", lock.Err(), nil)
		}
		w.Release(lock)
		_ = holder.Close(t.Context())
	})
}

func TestHolderNoticesBreakAfterHoursOfFailedRenewals(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		before := lab.Text(w.Item("job"), "recordVersionNumber")
		wire.SetFault(noTouch)
		lab.Elapse(3 * time.Hour)
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		if lab.Text(w.Item("job"), "recordVersionNumber") == before || lock.Err() != nil {
			t.Errorf("the record was not renewed, or the lock has ended: %v", lock.Err())
		}
		lab.WantErr(t, "renew", lock.Renew(t.Context(), leasehold.WithData([]byte("x"))), nil)
		lab.Want(t, "data", string(lock.Record().Data), "x")
		other, _ := w.Client(lab.Config())
		w.Break(other, lock, "")
		lab.Elapse(20 * time.Minute)
		lab.Want(t, "reason after a break", reasonOf(lock.Err()), leasehold.LostBroken)
		_ = c.Close(t.Context())
	})
}

func TestLockOfExpiredSessionIsTakenOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire, lock := w.Holding(lab.SharedConfig())
		lab.OK(t, lock.Renew(t.Context()))
		wire.SetFault(lab.On(lab.Call.RenewsSession, lab.Cut))
		lab.Elapse(17 * time.Second)
		// Renew writes only the lock's own record. It does not prolong the session's lease, on
		// which the trust in the lock depends.
		lab.OK(t, lock.Renew(t.Context()))
		lab.Elapse(2 * time.Second)
		lab.WantErr(t, "lock of the expired session", lock.Err(), leasehold.ErrLost)
		waiter, _ := w.Client(lab.Config())
		began := time.Now()
		next := w.Acquire(waiter, "job")
		lab.WantTook(t, "taken over after", began, 0, 22*time.Second)
		w.Release(next)
		wire.SetFault(nil)
		_ = holder.Close(t.Context())
	})
}
