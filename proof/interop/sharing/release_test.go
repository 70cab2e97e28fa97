//go:build linux

package sharing

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// looks returns the operation with which a library polls a held key, and the number of
// these requests in one poll.
func looks(p peers.Peer) (operation string, perLook int) {
	switch p.Name {
	case peers.DynamoDLM.Name:
		return "PutItem", 1 // dynamo-dlm polls with the conditional put that acquires the key
	case peers.DyndbMutex.Name:
		return "PutItem", 2 // dyndb-mutex sends two puts: the first deletes an expired record, and the second acquires the key
	}
	return "GetItem", 1
}

// No lease expires during this test, because each lease lasts an hour. So only the release
// can end the wait.
func TestWaiterWaitsUntilHolderOfOtherLibraryReleases(t *testing.T) {
	matches(t, time.Hour, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			holder := m.run(t, first)
			waiter, front := m.runBehind(t, second)
			held := holder.Acquire(t, key)
			waiter.Refused(t, key)

			front.Reset()
			operation, perLook := looks(second)
			wait := waiter.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})
			tick(t, "the waiter looks three times", func() bool { return front.Asked(operation) >= 3*perLook })
			waiting(t, wait)

			released := holder.Release(t, held)
			front.Reset()
			reply := granted(t, wait)
			if n := front.Asked(operation); n > perLook {
				t.Errorf("the waiter took %d looks after the release, want at most one", n/perLook)
			}
			holder.Refused(t, key)
			t.Logf("granted %v after the release", reply.At.Sub(released.At).Round(time.Millisecond))
			waiter.Release(t, reply.ID)
		})
	})
}
