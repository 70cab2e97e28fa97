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

// contest is a competition for one key between clients of leasehold and clients of a peer,
// which is another lock library.
type contest struct {
	each  int   // number of clients of each library
	slots int   // number of permits if the key is a semaphore; zero for a lock
	turns int   // minimum number of grants of each client; no client stops earlier
	total int64 // minimum number of grants of all clients together; no client stops earlier
}

// run runs the contest until the numbers of grants have reached their minimums. The clients
// check exclusion with files. A client that is granted a slot creates the file of the slot,
// and fails if the file exists. It removes the file before it releases the slot.
func (c contest) run(t *testing.T, m match) {
	m.poll = 40 * time.Millisecond
	var drivers []*peers.Driver
	for range c.each {
		drivers = append(drivers, m.run(t, m.peer), m.run(t, m.ours))
	}
	dir, begun := t.TempDir(), time.Now()
	var inside, entered, hadTheirTurns atomic.Int64
	counts := make([]int, len(drivers)) // each element is written by only one goroutine
	var all sync.WaitGroup
	for i, d := range drivers {
		all.Go(func() {
			for !t.Failed() && (entered.Load() < c.total || hadTheirTurns.Load() < int64(len(drivers))) {
				held, err := d.Ask(t, peers.Request{Do: "acquire", Key: "k", Wait: 10 * time.Minute, Slots: c.slots})
				if err != nil {
					t.Errorf("%s, process %d, had %d turns and no more: %v", d.Peer.Name, i, counts[i], err)
					return
				}
				file := filepath.Join(dir, c.slotOf(held))
				f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					t.Errorf("two hold the same slot: %s is in, and so is another: %v", d.Peer.Name, err)
					return
				}
				if n := inside.Add(1); n > int64(max(c.slots, 1)) {
					t.Errorf("%d are in, one of them %s", n, d.Peer.Name)
				}
				entered.Add(1)
				if counts[i]++; counts[i] == c.turns {
					hadTheirTurns.Add(1)
				}
				<-time.After(10 * time.Millisecond) // time in which another client enters if exclusion is broken
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
				<-time.After(20 * time.Millisecond) // the client pauses, so that other clients can acquire the key
			}
		})
	}
	all.Wait()
	t.Logf("%d turns in %v; each %v (theirs and ours in turns)", entered.Load(), time.Since(begun).Round(time.Millisecond), counts)
}

// slotOf returns the name of the slot that a client holds: "lock", or the name of a
// semaphore's permit.
func (c contest) slotOf(held peers.Reply) string {
	switch {
	case c.slots == 0:
		return "lock"
	case held.Record.SortValue != "":
		return held.Record.SortValue
	}
	return fmt.Sprint(held.Record.Slot)
}

func TestOtherLibraryAndLeaseholdNeverHoldLockTogether(t *testing.T) {
	matches(t, 2*time.Minute, contest{each: 4, turns: 1, total: 200}.run)
}

func TestDynamoDLMAndLeaseholdShareThreePermits(t *testing.T) {
	with(t, peers.DynamoDLM, 2*time.Minute, contest{each: 3, slots: 3, turns: 10}.run)
}
