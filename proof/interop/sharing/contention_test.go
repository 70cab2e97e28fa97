//go:build linux

package sharing

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// The critical sections check exclusion themselves: each creates a file that must not exist
// yet, and removes the file when the section ends. No client stops before every client has
// run a section. So each client gets its first turn while all others still compete.
func TestPeersAndLeaseholdNeverHoldLockTogether(t *testing.T) {
	const each, sections = 4, 200
	matches(t, 2*time.Minute, func(t *testing.T, m match) {
		m.poll = 40 * time.Millisecond
		var drivers []*peers.Driver
		for range each {
			drivers = append(drivers, m.run(t, m.peer), m.run(t, m.ours))
		}
		inside := filepath.Join(t.TempDir(), "inside")
		begun := time.Now()
		var entered, hadTheirTurn atomic.Int64
		counts := make([]int, len(drivers)) // each count is written by one goroutine
		var all sync.WaitGroup
		for i, d := range drivers {
			all.Go(func() {
				for !t.Failed() && (entered.Load() < sections || hadTheirTurn.Load() < int64(len(drivers))) {
					held, err := d.Ask(t, peers.Request{Do: "acquire", Key: "k", Wait: 10 * time.Minute})
					if err != nil {
						t.Errorf("%s, process %d, had %d turns and no more: %v", d.Peer.Name, i, counts[i], err)
						return
					}
					f, err := os.OpenFile(inside, os.O_CREATE|os.O_EXCL, 0o600)
					if err != nil {
						t.Errorf("two hold the key: %s is in, and so is another: %v", d.Peer.Name, err)
						return
					}
					entered.Add(1)
					if counts[i]++; counts[i] == 1 {
						hadTheirTurn.Add(1)
					}
					<-time.After(10 * time.Millisecond) // time for another client to enter, if it can
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if err := os.Remove(inside); err != nil {
						t.Error(err)
					}
					if _, err := d.Ask(t, peers.Request{Do: "release", Lock: held.ID}); err != nil {
						t.Error(err)
						return
					}
					<-time.After(20 * time.Millisecond) // time for the client to do something else
				}
			})
		}
		all.Wait()
		var ours, theirs int
		for i, d := range drivers {
			if d.Peer.Name == m.ours.Name {
				ours += counts[i]
			} else {
				theirs += counts[i]
			}
		}
		t.Logf("ours had %d, the peer %d, in %v; each %v", ours, theirs, time.Since(begun).Round(time.Millisecond), counts)
	})
}
