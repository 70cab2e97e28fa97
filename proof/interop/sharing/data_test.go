//go:build linux

package sharing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

func TestLockLibrariesReadEachOthersRecords(t *testing.T) {
	matches(t, time.Hour, func(t *testing.T, m match) {
		m.bothWays(t, func(t *testing.T, first, second peers.Peer, key string) {
			writer, reader := m.run(t, first), m.run(t, second)
			acquire := peers.Request{Do: "acquire", Key: key, Data: []byte("some data")}
			if m.peer.Name != peers.AWSLabs.Name && m.peer.Name != peers.Dynamolock.Name {
				acquire.Data = nil // this peer's layout stores no data
			}
			if m.peer.Layout != peers.DynamoDLM.Layout && m.peer.Layout != peers.DyndbMutex.Layout {
				acquire.Attributes = peers.Attributes{
					"colour": &types.AttributeValueMemberS{Value: "red"},
					"shelf":  &types.AttributeValueMemberN{Value: "3"},
					"parts": &types.AttributeValueMemberL{Value: []types.AttributeValue{
						&types.AttributeValueMemberB{Value: []byte("x")},
					}},
				}
			}
			held := writer.Must(t, acquire)
			reply, err := reader.Ask(t, peers.Request{Do: "get", Key: key})
			if errors.Is(err, peers.ErrUnsupported) {
				t.Skip(second.Name, "cannot read a lock")
			}
			lab.OK(t, err)
			same(t, reply.Record, held.Record, acquire)

			list, err := reader.Ask(t, peers.Request{Do: "list"})
			switch {
			case errors.Is(err, peers.ErrUnsupported): // the reader's library cannot list locks
			case err != nil:
				t.Error(err)
			default:
				i := slices.IndexFunc(list.Records, func(r peers.Record) bool { return r.Key == key })
				if i < 0 {
					t.Fatalf("the listing shows %d records, none of %s", len(list.Records), key)
				}
				same(t, &list.Records[i], held.Record, acquire)
			}
			writer.Release(t, held.ID)
			// In some layouts, the release keeps the record. The other library must also be able to
			// read this record, which has no holder.
			lab.WantErr(t, "get after the release", lab.ErrorOf(reader.Ask(t, peers.Request{Do: "get", Key: key})), nil)
			if _, err := reader.Ask(t, peers.Request{Do: "list"}); err != nil && !errors.Is(err, peers.ErrUnsupported) {
				t.Errorf("list after the release: %v", err)
			}
		})
	})
}

// The function "same" compares a record with the granted lock and the written data. It ignores all
// other attributes, because some libraries also return the attributes that only leasehold uses.
func same(t *testing.T, got, held *peers.Record, written peers.Request) {
	t.Helper()
	if got == nil {
		t.Fatal("there is no record")
	}
	if held.Owner != "" && got.Owner != held.Owner && got.Owner != held.Owner+"/"+held.Version {
		t.Errorf("owner %q, want %q", got.Owner, held.Owner)
	}
	lab.Want(t, "data", string(got.Data), string(written.Data))
	for name, want := range written.Attributes {
		lab.Want(t, "attribute "+name, got.Attributes[name], want)
	}
}

// contest is a competition for one key between clients of leasehold and clients of a peer,
// which is another lock library.
type contest struct {
	each  int   // number of clients of each library
	slots int   // number of permits if the key is a semaphore; zero for a lock
	turns int   // the contest continues until each client has been granted the key this many times
	total int64 // the contest continues until all clients together have this many grants
}

// run runs the contest until each client has at least c.turns grants, and all clients together have
// at least c.total. The holder of a lock or permit creates a file for it, and removes the file
// before the release. If the file already exists, there are two holders: the test fails.
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
					t.Errorf("%s, process %d, failed after %d grants: %v", d.Peer.Name, i, counts[i], err)
					return
				}
				file := filepath.Join(dir, c.slotOf(held))
				f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					t.Errorf("%s was granted a slot that another client holds: %v", d.Peer.Name, err)
					return
				}
				if n := inside.Add(1); n > int64(max(c.slots, 1)) {
					t.Errorf("%d clients hold a slot, one of them %s", n, d.Peer.Name)
				}
				entered.Add(1)
				if counts[i]++; counts[i] == c.turns {
					hadTheirTurns.Add(1)
				}
				<-time.After(10 * time.Millisecond) // leave time for a second client: it would be granted the slot now if the lock were broken
				inside.Add(-1)
				lab.OK(t, f.Close())
				lab.OK(t, os.Remove(file))
				if _, err := d.Ask(t, peers.Request{Do: "release", Lock: held.ID}); err != nil {
					t.Error(err)
					return
				}
				<-time.After(20 * time.Millisecond) // the client pauses, so that other clients can acquire the key
			}
		})
	}
	all.Wait()
	t.Logf("%d grants in %v; of each client: %v (peer and leasehold alternate)", entered.Load(), time.Since(begun).Round(time.Millisecond), counts)
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

func TestLockLibrariesNeverHoldSameLockConcurrently(t *testing.T) {
	matches(t, 2*time.Minute, contest{each: 4, turns: 1, total: 200}.run)
}

func TestDynamoDLMAndLeaseholdShareSemaphore(t *testing.T) {
	with(t, peers.DynamoDLM, 2*time.Minute, contest{each: 3, slots: 3, turns: 10}.run)
}
