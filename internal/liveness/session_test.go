package liveness_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// under returns a record of a lock under the session with the given id.
func under(id string) protocol.Record { return protocol.Record{Session: id} }

// begin writes the row of a new session. The returned function changes the row's version.
func (w *world) begin(id string) (renew func(from, to string)) {
	w.Helper()
	sharing := w.proto.(protocol.Native)
	key := sharing.SessionKey(id)
	w.send(sharing.Session().Grant(protocol.Grant{Key: key, Owner: id, Version: "one", Lease: lease, Now: time.Now()}))
	return func(from, to string) {
		w.Helper()
		w.send(sharing.Session().Renew(protocol.Hold{Key: key, Owner: id, Grants: []string{"one"}, Versions: []string{from}},
			protocol.Renewal{Version: to, Lease: lease, Now: time.Now()}))
	}
}

// observing returns a world with a session "s", an observer, and a function that renews the
// session.
func observing(t *testing.T) (*world, *liveness.Observer, func(from, to string)) {
	t.Helper()
	w := newWorld(t, layout.Native{})
	renew := w.begin("s")
	return w, w.observer(), renew
}

func (w *world) look(o *liveness.Observer, id string) time.Duration {
	w.Helper()
	_, at, err := o.SessionOf(under(id)).Look(w.Context(), 0, new(atomic.Int64))
	if err != nil {
		w.Fatal(err)
	}
	return at
}

func (w *world) markDead(o *liveness.Observer, id string) bool {
	w.Helper()
	dead, err := o.SessionOf(under(id)).MarkDead(w.Context(), new(atomic.Int64))
	if err != nil {
		w.Fatal(err)
	}
	return dead
}

func TestUnrenewedSessionIsMarkedDeadAfterOneLeaseDuration(t *testing.T) {
	w, o, renew := observing(t)
	if at := w.look(o, "s"); at != w.now+lease || w.markDead(o, "s") {
		t.Fatalf("session just seen: dead in %v", at-w.now)
	}
	w.now += lease - 1
	renew("one", "two")
	if at := w.look(o, "s"); at != w.now+lease || w.markDead(o, "s") {
		t.Fatalf("session just renewed: dead in %v", at-w.now)
	}
	w.now += lease
	if !w.markDead(o, "s") {
		t.Fatal("not marked dead after a lease without renewal")
	}
	lab.Want(t, "dead at, for another client", w.look(w.observer(), "s"), math.MinInt64)
}

func TestSessionRenewedSinceReadIsNotMarkedDead(t *testing.T) {
	w, o, renew := observing(t)
	w.look(o, "s")
	w.now += lease
	renew("one", "two")
	if w.markDead(o, "s") {
		t.Fatal("marked dead")
	}
	lab.Want(t, "dead at", w.look(o, "s"), w.now+lease)
}

func TestTwoClientsCanMarkSameSessionDead(t *testing.T) {
	w, a, _ := observing(t)
	b := w.observer()
	w.look(a, "s")
	w.look(b, "s")
	w.now += lease
	if !w.markDead(a, "s") || !w.markDead(b, "s") {
		t.Error("one client does not treat the session as dead")
	}
}

func TestDeadSessionIsNotReadAgain(t *testing.T) {
	w, o, _ := observing(t)
	w.look(o, "s")
	w.now += lease
	if !w.markDead(o, "s") {
		t.Fatal("not dead")
	}
	w.db.cut = true
	lab.Want(t, "dead at", w.look(o, "s"), math.MinInt64)
}

func TestSessionIsDeadIfItsRowStaysMissingForWholeLease(t *testing.T) {
	w := newWorld(t, layout.Native{})
	o := w.observer()
	seen := w.now
	for range 3 {
		if at := w.look(o, "gone"); at != seen+lease || w.markDead(o, "gone") {
			t.Fatalf("dead in %v", at-w.now)
		}
		w.now += 6 * time.Second
	}
	w.now = seen + lease
	lab.Want(t, "dead after a lease", w.markDead(o, "gone"), true)
}

func TestSessionIsMarkedDeadEvenIfCacheForgotItsVersion(t *testing.T) {
	w, o, _ := observing(t)
	o.Records = liveness.NewVersions(1)
	seen := w.now
	for i := range 3 {
		lab.Want(t, "dead at", w.look(o, "s"), seen+lease)
		o.Records.Note(protocol.Key{Partition: fmt.Sprint(i)}, protocol.Record{Version: "one"}, w.clock())
		w.now += 6 * time.Second
	}
	w.now = seen + lease
	lab.Want(t, "marked dead after a lease without renewal", w.markDead(o, "s"), true)
}

func TestSessionRowIsReadAgainOnlyIfLastReadIsOld(t *testing.T) {
	w, o, _ := observing(t)
	w.look(o, "s")
	for _, tc := range []struct {
		after, fresh time.Duration
		reads        int
	}{
		{999 * time.Millisecond, time.Second, 1},
		{time.Millisecond, time.Second, 2},
		{0, 0, 3},
	} {
		w.now += tc.after
		if _, _, err := o.SessionOf(under("s")).Look(t.Context(), tc.fresh, new(atomic.Int64)); err != nil || w.db.reads != tc.reads {
			t.Errorf("%d reads, want %d: %v", w.db.reads, tc.reads, err)
		}
	}
}

func TestFailedReadDoesNotMakeSessionDead(t *testing.T) {
	w, o, _ := observing(t)
	w.look(o, "s")
	w.db.cut = true
	w.now += time.Second
	if _, _, err := o.SessionOf(under("s")).Look(t.Context(), 0, new(atomic.Int64)); attempts.FailureOf(err) == nil {
		t.Errorf("%v", err)
	}
	lab.Want(t, "marked dead a second after it was seen", w.markDead(o, "s"), false)
}

func TestSessionRowIsNotReadIfContextIsCancelled(t *testing.T) {
	w, o, _ := observing(t)
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 20 {
		if _, _, err := o.SessionOf(under("s")).Look(left, 0, new(atomic.Int64)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	lab.Want(t, "reads", w.db.reads, 0)
}

func TestSessionWithUnreadableRowIsNotMarkedDead(t *testing.T) {
	w := newWorld(t, layout.Native{})
	w.begin("s")
	for name, seen := range map[string]bool{"never readable": false, "readable before": true} {
		t.Run(name, func(t *testing.T) {
			o := w.observer()
			if seen {
				w.look(o, "s")
				w.now += lease
			}
			w.db.odd = true
			for range 2 { // before the second Look, the first has read an item that it could not decode
				if _, at, err := o.SessionOf(under("s")).Look(t.Context(), time.Second, new(atomic.Int64)); !errors.Is(err, errDamaged) {
					t.Errorf("dead in %v: %v", at-w.now, err)
				}
				if w.markDead(o, "s") {
					t.Fatal("marked dead")
				}
			}
			w.db.odd = false
			if at := w.look(o, "s"); seen && at != w.now || !seen && at != w.now+lease {
				t.Errorf("row readable again: dead in %v", at-w.now)
			}
		})
	}
}

func TestObserverRemembersAtMost250UnusedSessions(t *testing.T) {
	w := newWorld(t, layout.Native{})
	o := w.observer()
	for i := range 1000 {
		o.SessionOf(under(fmt.Sprint(i)))
		w.now += time.Minute
	}
	lab.WantRange(t, "sessions remembered", o.Sessions(), 0, 250)
	if last := o.SessionOf(under("999")); last != o.SessionOf(under("999")) || o.Sessions() > 250 {
		t.Error("a session in use is forgotten")
	}
}

func TestObserverDoesNotForgetSessionInUse(t *testing.T) {
	w := newWorld(t, layout.Native{})
	o := w.observer()
	first := o.SessionOf(under("asked for"))
	for i := range 1000 {
		o.SessionOf(under(fmt.Sprint(i)))
		w.now += time.Minute
		if o.SessionOf(under("asked for")) != first {
			t.Fatalf("forgotten after %d others", i+1)
		}
	}
}

func TestObserverForgetsSessionsUnusedForOneHour(t *testing.T) {
	w := newWorld(t, layout.Native{})
	o := w.observer()
	for i := range 200 {
		o.SessionOf(under(fmt.Sprint(i)))
	}
	w.now += time.Hour
	o.SessionOf(under("next"))
	lab.Want(t, "sessions remembered", o.Sessions(), 1)
}

func TestObserverReturnsNilSessionForRecordWithoutSession(t *testing.T) {
	lab.Want(t, "session of a record without one", newWorld(t, layout.Native{}).observer().SessionOf(protocol.Record{}), nil)
	lab.Want(t, "session in a layout without sessions", newWorld(t, layout.DynamoDLM{}).observer().SessionOf(under("s")), nil)
}
