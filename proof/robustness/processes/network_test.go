//go:build linux

package processes

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func TestLocksStayExclusiveDespiteNetworkFaults(t *testing.T) {
	t.Parallel()
	const lease, workers = time.Second, 8
	toxics := []toxic{
		{"timeout", "upstream", map[string]int{"timeout": 0}},     // requests never reach the server
		{"timeout", "downstream", map[string]int{"timeout": 0}},   // the server applies requests, but its replies never arrive
		{"timeout", "downstream", map[string]int{"timeout": 300}}, // the proxy closes the connection after 300 ms
		{"reset_peer", "upstream", map[string]int{"timeout": 0}},
		{"reset_peer", "downstream", map[string]int{"timeout": 20}},
		{"limit_data", "downstream", map[string]int{"bytes": 500}}, // the proxy truncates replies
		{"limit_data", "upstream", map[string]int{"bytes": 2500}},  // the proxy truncates requests
		{"slow_close", "downstream", map[string]int{"delay": 1500}},
		{"latency", "upstream", map[string]int{"latency": 300, "jitter": 250}},
		{"latency", "downstream", map[string]int{"latency": 300, "jitter": 250}},
		{"bandwidth", "upstream", map[string]int{"rate": 2}}, // the bandwidth is 2 kilobytes a second
		{"bandwidth", "downstream", map[string]int{"rate": 1}},
		{"slicer", "downstream", map[string]int{"average_size": 40, "size_variation": 30, "delay": 5000}},
	}
	late := toxic{"latency", "upstream", map[string]int{"latency": 1800}}
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			server := engines.Run(t, e)
			c := newCrew(t, "n"+e.Name[:3], place{Endpoint: server.Endpoint})
			networks := []*network{connect(t, "one", server.Endpoint), connect(t, "other", server.Endpoint)}
			for i := range workers {
				c.worker(task{Place: networks[i%2].place(), Keys: keysOf(4), Lease: lease})
			}
			chance := c.chance()
			// Half of the workers use the first network, and half the second. The function "meets"
			// causes a fault on the given networks (one or both), and then ends it. During a fault
			// on one network, workers on the other network may take over the keys.
			meets := func(what string, hit []*network, fault, mend func(*network)) {
				c.journal.write(Event{Kind: Broke, Text: fmt.Sprintf("%s, %d networks", what, len(hit))})
				for _, n := range hit {
					fault(n)
				}
				wait(lease + time.Duration(chance.Int64N(int64(lease))))
				for _, n := range hit {
					mend(n)
				}
				wait(time.Duration(chance.Int64N(int64(lease))))
			}
			some := func() []*network { return [][]*network{networks[:1], networks[1:], networks}[chance.IntN(3)] }
			for _, x := range toxics {
				meets(x.Type+" "+x.Stream, some(), func(n *network) { n.add(x) }, (*network).clear)
			}
			for range 3 {
				meets("down", some(), (*network).down, (*network).up)
			}
			// One network delays its requests so much that, when they arrive, workers on the other
			// network have already acquired the keys.
			for i := range 6 {
				meets("late", networks[i%2:][:1], func(n *network) { n.add(late) }, func(n *network) {
					wait(lease)
					n.clear()
				})
			}
			f := verify(t, c.finish())
			if f.unanswered+f.unheard == 0 || f.losses == 0 || f.takeovers == 0 {
				t.Error("the faults caused no unanswered request, no lost lock or no takeover")
			}
		})
	}
}

// The test does not run on DynamoDB Local, because a kill made that server lose a write that it had
// acknowledged 5 ms earlier. No lock is safe if the server loses acknowledged writes.
func TestLocksStayExclusiveDespiteServerRestart(t *testing.T) {
	t.Parallel()
	const lease, workers = time.Second, 6
	e := engines.Dynoxide.In(t.TempDir())
	server := engines.Run(t, e)
	n := connect(t, e.Name, server.Endpoint)
	c := newCrew(t, "restart", n.place())
	for range workers {
		c.worker(task{Place: n.place(), Keys: keysOf(3), Lease: lease})
	}
	chance := c.chance()
	for range 4 {
		up := now()
		_, ok := c.watcher.await(2*bound, func(e Event) bool { return e.Kind == Granted && e.At > up })
		lab.Want(t, "the new server granted a key", ok, true)
		wait(time.Duration(chance.Int64N(int64(lease))))
		c.journal.write(Event{Kind: Broke, Text: "kill -9 of the server"})
		lab.OK(t, server.Stop())
		if chance.IntN(2) == 0 { // let the server be down for longer than a lease
			wait(lease + lease/2)
		}
		server = engines.Run(t, e)
		n.lead(server.Endpoint)
	}
	f := verify(t, c.finish())
	lab.Want(t, "a worker noticed a restart", f.denied+f.unanswered+f.unheard > 0, true)
}

func TestNoKeyIsGrantedWithoutLockTable(t *testing.T) {
	t.Parallel()
	const lease, workers = time.Second, 4
	server := engines.Run(t, engines.Dynoxide)
	n := connect(t, "lost", server.Endpoint)
	c := newCrew(t, "lost", n.place())
	for range workers {
		c.worker(task{Place: n.place(), Keys: keysOf(2), Lease: lease, Idle: true})
	}
	for _, key := range keysOf(2) {
		if _, ok := c.watcher.await(bound, func(e Event) bool { return e.Kind == Granted && e.Key == key }); !ok {
			t.Fatalf("%s was not granted", key)
		}
	}
	lab.OK(t, server.Stop())
	lost := now()
	server = engines.Run(t, engines.Dynoxide) // a new server that stores data only in memory, so it has no tables
	n.lead(server.Endpoint)
	c.journal.write(Event{Kind: Broke, Text: "the tables are lost"})
	said := map[string]bool{}
	if _, ok := c.watcher.await(4*bound, func(e Event) bool {
		if e.Kind == Denied && e.At > lost && says(e, "no such table") {
			said[e.Who] = true
		}
		return len(said) == workers
	}); !ok {
		t.Errorf("%d of %d workers reported a missing table", len(said), workers)
	}
	wait(lease) // wait until no holder trusts its lock any longer
	asked := map[string]time.Duration{}
	for _, e := range c.events() {
		switch {
		case e.Kind == Asked:
			asked[e.Who] = e.At
		case e.Kind == Granted && asked[e.Who] > lost:
			t.Errorf("%s was granted %s without a table", e.Who, e.Key)
		}
	}
	lab.OK(t, c.tables.create(t.Context()))
	verify(t, c.finish())
}
