package cli

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/rwlock"
)

func TestAHolderIsDeadAfterItsLeaseOrOnceEveryClockHasPassedItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if d := (observer{expiry: layout.Observed}).deadIn(20*time.Second, time.Time{}, 5*time.Second); d != 15*time.Second {
			t.Errorf("seen for 5 s: dead in %v", d)
		}
		by := observer{expiry: layout.WallClock, late: 3 * time.Second}
		if d := by.deadIn(0, time.Now().Add(10*time.Second), time.Hour); d != 13*time.Second {
			t.Errorf("expires in 10 s: dead in %v", d)
		}
	})
}

func TestALeaseIsShownAsItsLengthOrAsItsEnd(t *testing.T) {
	now := time.Now()
	for want, r := range map[string]leasehold.Record{
		"20s":      {Lease: 20 * time.Second, ExpiresAt: now.Add(time.Hour)},
		"in 12s":   {ExpiresAt: now.Add(12 * time.Second)},
		"3m2s ago": {ExpiresAt: now.Add(-182 * time.Second)},
		"":         {ExpiresAt: now.Add(time.Hour), Released: true},
	} {
		if got := leaseText(r, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAForeignGrantIsToldFromTheNext(t *testing.T) {
	renewing := leasehold.Record{Owner: "java", Version: "1", Lease: time.Second}
	renewed := renewing
	renewed.Version = "2"
	if grantOf(renewing) != grantOf(renewed) {
		t.Error("a renewal is taken for another grant")
	}
	fixed := leasehold.Record{Owner: "mutex", Version: "1"}
	next := fixed
	next.Version = "2"
	if grantOf(fixed) == grantOf(next) {
		t.Error("two grants of a holder that does not renew are taken for one")
	}
}

func TestTheHolderOfASharedLeaseIsObservedByItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		o := newChecked(t, leasehold.Config{SharedLease: true})
		lock := o.acquire("job")
		records := []leasehold.Record{lock.Record()}
		o.watch(ctx, records, func(p plan) {
			if p.holders != 1 || p.longest != 20*time.Second {
				t.Errorf("the plan: %+v", p)
			}
		}, func(int, observation) {})
		began := time.Now()
		if found := o.observe(ctx, records)[0].liveness; found != live || time.Since(began) > 20*time.Second {
			t.Errorf("a holder whose session is renewed: %q after %v", found, time.Since(began))
		}
		o.close()
		began = time.Now()
		if found := o.observe(ctx, records)[0].liveness; found != dead || time.Since(began) > 0 {
			t.Errorf("a holder whose session is dead: %q after %v", found, time.Since(began))
		}
	})
}

func TestEveryHolderOfAReadWriteLockIsObservedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		o := newChecked(t, leasehold.Config{})
		rw, err := rwlock.New(o.holders, "set")
		if err != nil {
			t.Fatal(err)
		}
		for _, opts := range [][]leasehold.AcquireOption{nil, {leasehold.WithoutRenewal()}, nil} {
			if _, err := rw.AcquireRead(ctx, opts...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // so that they have an order
		}
		var records []leasehold.Record
		for r, err := range o.locks.List(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		var found []liveness
		for _, seen := range o.observe(ctx, records) {
			found = append(found, seen.liveness)
		}
		if !slices.Equal(found, []liveness{live, dead, live}) {
			t.Errorf("of three readers, the second of whom does not renew: %q", found)
		}
		third, err := holder(ctx, o.locks, records[2].Key, func(r leasehold.Record) bool { return r.Token == records[2].Token })
		if err != nil || third.Grant != records[2].Grant {
			t.Errorf("the holder with the third token is %+v, %v", third, err)
		}
		o.close()
	})
}

func TestAHolderThatHasRenewedItsSessionSinceIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		by := newChecked(t, leasehold.Config{SharedLease: true})
		lock := by.acquire("job")
		sharing := by.reader.proto.(protocol.Sharing)
		key := sharing.SessionKey(protocol.ClientID(lock.Record().Owner))
		items, err := by.reader.byKey(ctx, []protocol.Key{key})
		if err != nil {
			t.Fatal(err)
		}
		beat, err := sessionHeartbeat(sharing, items[key])
		if err != nil {
			t.Fatal(err)
		}
		found := observation{record: lock.Record(), liveness: dead, heartbeat: beat}
		if err := by.stillDead(ctx, found); err != nil {
			t.Errorf("before it has renewed: %v", err)
		}
		time.Sleep(6 * time.Second)
		if errs := breakAll(ctx, by.observer, []observation{found}, breakFlags{}); !errors.Is(errs[0], leasehold.ErrChanged) || lock.Err() != nil {
			t.Errorf("after it has renewed: %v, and the holder: %v", errs[0], lock.Err())
		}
		by.close()
		found.heartbeat.dead = true
		if errs := breakAll(ctx, by.observer, []observation{found}, breakFlags{}); errs[0] != nil {
			t.Errorf("after its session has ended: %v", errs[0])
		}
	})
}
