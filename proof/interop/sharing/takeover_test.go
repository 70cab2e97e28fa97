//go:build linux

package sharing

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// lastSign waits for the holder's next renewal, and returns a time shortly before it. If
// the holder does not renew, or if its layout stores no version, lastSign returns the
// current time.
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

func TestTakeoverFromOtherLibraryHappensOnlyAfterLease(t *testing.T) {
	matches(t, 6*time.Second, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			holder, waiter := m.run(t, first), m.run(t, second)
			holder.Acquire(t, key)
			wait := waiter.Send(peers.Request{Do: "acquire", Key: key, Wait: 10 * time.Minute})

			sign := lastSign(t, m, holder, key)
			if err := holder.Kill(); err != nil {
				t.Fatal(err)
			}
			waiting(t, wait)
			earliest := sign.Add(m.settings.Lease)
			if end := expiry(t, m, key); !end.IsZero() {
				earliest = end
			}

			reply := granted(t, wait)
			if reply.At.Before(earliest) {
				t.Errorf("taken over %v before the lease was over", earliest.Sub(reply.At))
			}
			t.Logf("taken over %v after the earliest moment", reply.At.Sub(earliest).Round(time.Millisecond))
			waiter.Release(t, reply.ID)
		})
	})
}
