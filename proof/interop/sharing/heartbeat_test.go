//go:build linux

package sharing

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

func TestOtherLibraryAndLeaseholdRenewLockDespiteWaiter(t *testing.T) {
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
			if !holder.Held(t, held) {
				t.Errorf("%s says that it lost the lock", first.Name)
			}
			holder.Release(t, held)
			waiter.Release(t, granted(t, wait).ID)
		})
	})
}

func TestPausedHolderDoesNotChangeRecordOfNewHolder(t *testing.T) {
	matches(t, 6*time.Second, func(t *testing.T, m match) {
		const key = "paused"
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		late := peer.Acquire(t, key)
		wait := ours.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})
		sign := lastSign(t, m, peer, key)
		lab.OK(t, peer.Stop())
		reply := granted(t, wait)
		if early := sign.Add(m.settings.Lease).Sub(reply.At); versionName(m) != "" && early > 0 {
			t.Errorf("taken over from a paused holder %v before the lease was over", early)
		}
		lab.OK(t, peer.Continue())
		if m.peer.Heartbeats {
			tick(t, "the peer notices", func() bool { return !peer.Held(t, late) })
		}
		// The peer lost its lock while it was paused. So its release may, but need not, return an
		// error.
		_, err := peer.Ask(t, peers.Request{Do: "release", Lock: late})
		if err != nil && !errors.Is(err, peers.ErrLost) {
			t.Errorf("the late release failed: %v", err)
		}
		peer.Refused(t, key)
		if !ours.Held(t, reply.ID) {
			t.Error("ours lost the lock to a peer that was late")
		}
		now := ours.Must(t, peers.Request{Do: "get", Key: key}).Record
		if now == nil || now.Token != reply.Record.Token || now.Owner != reply.Record.Owner {
			t.Errorf("the record is %+v, want still that of the grant, %+v", now, reply.Record)
		}
		ours.Release(t, reply.ID)
	})
}
