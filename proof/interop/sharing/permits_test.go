//go:build linux

package sharing

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// Each client that enters counts the clients inside, and creates the file of its slot, which
// must not exist. All continue until each has entered ten times.
func TestDynamoDLMAndLeaseholdShareThreePermits(t *testing.T) {
	const each, permits, turns = 3, 3, 10
	with(t, peers.DynamoDLM, 2*time.Minute, func(t *testing.T, m match) {
		m.poll = 40 * time.Millisecond
		var drivers []*peers.Driver
		for range each {
			drivers = append(drivers, m.run(t, m.peer), m.run(t, m.ours))
		}
		dir := t.TempDir()
		begun := time.Now()
		var inside, most, hadTheirTurns atomic.Int64
		counts := make([]int, len(drivers)) // each count is written by one goroutine
		var all sync.WaitGroup
		for i, d := range drivers {
			all.Go(func() {
				for !t.Failed() && hadTheirTurns.Load() < int64(len(drivers)) {
					held, err := d.Ask(t, peers.Request{Do: "acquire", Key: "k", Wait: 10 * time.Minute, Slots: permits})
					if err != nil {
						t.Errorf("%s, process %d, had %d turns and no more: %v", d.Peer.Name, i, counts[i], err)
						return
					}
					slot := fmt.Sprint(held.Record.Slot)
					if held.Record.SortValue != "" {
						slot = held.Record.SortValue
					}
					file := filepath.Join(dir, slot)
					f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
					if err != nil {
						t.Errorf("two hold slot %s: %s is in, and so is another: %v", slot, d.Peer.Name, err)
						return
					}
					n := inside.Add(1)
					if n > permits {
						t.Errorf("%d are in, one of them %s", n, d.Peer.Name)
					}
					for {
						if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
							break
						}
					}
					if counts[i]++; counts[i] == turns {
						hadTheirTurns.Add(1)
					}
					<-time.After(10 * time.Millisecond) // time for other clients to enter, if they can
					inside.Add(-1)
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if err := os.Remove(file); err != nil {
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
		t.Logf("at most %d were in, in %v; each %v (theirs and ours in turns)", most.Load(), time.Since(begun).Round(time.Millisecond), counts)
	})
}
