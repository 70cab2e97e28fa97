//go:build linux

package sharing

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// lastSign waits until the holder renews, and returns a time shortly before that renewal. If the
// holder's library sends no renewals, or if the layout stores an expiry time instead of a version,
// lastSign returns the current time immediately.
func lastSign(t *testing.T, m match, holder *peers.Driver, key string) (notBefore time.Time) {
	t.Helper()
	name := versionName(m)
	if name == "" || !holder.Peer.Heartbeats {
		return time.Now()
	}
	version := text(m.item(t, key), name)
	tick(t, "a heartbeat", func() bool {
		asked := time.Now()
		if text(m.item(t, key), name) != version {
			return true
		}
		notBefore = asked
		return false
	})
	return notBefore
}

// versionName returns the name of the attribute that every renewal changes. It returns ""
// for layouts that store an expiry time instead.
func versionName(m match) string {
	switch m.peer.Layout {
	case "awslabs", "dynamolock":
		return "recordVersionNumber"
	case "python-dynamodb-lock":
		return "record_version_number"
	}
	return ""
}

// expiry returns the expiry time in the record of a lock. It returns the zero time for
// layouts that store a version instead.
func expiry(t *testing.T, m match, key string) time.Time {
	t.Helper()
	item := m.item(t, key)
	switch m.peer.Layout {
	case "dynamo-dlm":
		return time.Unix(integer(t, item, "expires"), 0)
	case "dyndb-mutex":
		return time.UnixMilli(integer(t, item, "expire_ts"))
	}
	return time.Time{}
}

func TestLockLibrariesTakeOverLockOnlyAfterLeaseExpires(t *testing.T) {
	matches(t, 6*time.Second, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			holder, waiter := m.run(t, first), m.run(t, second)
			holder.Acquire(t, key)
			wait := waiter.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})

			sign := lastSign(t, m, holder, key)
			lab.OK(t, holder.Kill())
			waiting(t, wait)
			earliest := sign.Add(m.settings.Lease)
			if end := expiry(t, m, key); !end.IsZero() {
				earliest = end
			}

			reply := lab.Must(wait.Await(t))(t)
			if reply.At.Before(earliest) {
				t.Errorf("taken over %v before the lease expired", earliest.Sub(reply.At))
			}
			t.Logf("taken over %v after the earliest moment", reply.At.Sub(earliest).Round(time.Millisecond))
			waiter.Release(t, reply.ID)
		})
	})
}

// looks returns the operation with which a library polls a held key, and the number of requests
// of this operation that one poll sends.
func looks(p peers.Peer) (operation string, perLook int) {
	switch p.Name {
	case peers.DynamoDLM.Name:
		return "PutItem", 1 // dynamo-dlm polls with the conditional put that acquires the key
	case peers.DyndbMutex.Name:
		return "PutItem", 2 // dyndb-mutex sends two puts: the first deletes an expired record, and the second acquires the key
	}
	return "GetItem", 1
}

// Leases last an hour in this test. No lease expires during the test, so a waiter acquires the key
// only because the holder has released it.
func TestWaiterAcquiresLockOnFirstPollAfterRelease(t *testing.T) {
	matches(t, time.Hour, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			holder := m.run(t, first)
			waiter, front := m.runBehind(t, second)
			held := holder.Acquire(t, key)
			waiter.Refused(t, key)

			front.Reset()
			operation, perLook := looks(second)
			wait := waiter.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})
			tick(t, "three polls of the waiter", func() bool { return front.Asked(operation) >= 3*perLook })
			waiting(t, wait)

			released := holder.Release(t, held)
			front.Reset()
			reply := lab.Must(wait.Await(t))(t)
			lab.WantRange(t, "requests of polls after the release, at most one poll", front.Asked(operation), 0, perLook)
			holder.Refused(t, key)
			t.Logf("granted %v after the release", reply.At.Sub(released.At).Round(time.Millisecond))
			waiter.Release(t, reply.ID)
		})
	})
}

func TestWaitingLibraryDoesNotTakeOverRenewedLock(t *testing.T) {
	matches(t, 6*time.Second, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			if !first.Heartbeats {
				t.Skip(first.Name, "has no heartbeats: its lock ends with its lease")
			}
			holder, waiter := m.run(t, first), m.run(t, second)
			held := holder.Acquire(t, key)
			wait := waiter.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})
			elapse(t, 3*m.settings.Lease)
			waiting(t, wait)
			lab.Want(t, first.Name+" reports the lock as held", holder.Held(t, held), true)
			holder.Release(t, held)
			waiter.Release(t, lab.Must(wait.Await(t))(t).ID)
		})
	})
}

func TestResumedHolderCannotChangeGrantOfNextHolder(t *testing.T) {
	matches(t, 6*time.Second, func(t *testing.T, m match) {
		const key = "paused"
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		late := peer.Acquire(t, key)
		wait := ours.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})
		sign := lastSign(t, m, peer, key)
		lab.OK(t, peer.Stop())
		reply := lab.Must(wait.Await(t))(t)
		if early := sign.Add(m.settings.Lease).Sub(reply.At); versionName(m) != "" && early > 0 {
			t.Errorf("taken over from a paused holder %v before the lease expired", early)
		}
		lab.OK(t, peer.Continue())
		if m.peer.Heartbeats {
			tick(t, "the peer reports the loss", func() bool { return !peer.Held(t, late) })
		}
		// The peer lost its lock while its process was paused. Depending on the library, the
		// release now reports the loss (ErrLost) or succeeds.
		_, err := peer.Ask(t, peers.Request{Do: "release", Lock: late})
		if err != nil && !errors.Is(err, peers.ErrLost) {
			t.Errorf("the late release failed: %v", err)
		}
		peer.Refused(t, key)
		lab.Want(t, "leasehold holds the lock despite the resumed peer", ours.Held(t, reply.ID), true)
		now := ours.Must(t, peers.Request{Do: "get", Key: key}).Record
		if now == nil || now.Token != reply.Record.Token || now.Owner != reply.Record.Owner {
			t.Errorf("the record is %+v, want the record of the grant, %+v", now, reply.Record)
		}
		ours.Release(t, reply.ID)
	})
}
