//go:build linux

package processes

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

// keysOf returns the first n of the keys that the workers of a crew use.
func keysOf(n int) []string { return []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:n] }

// share divides n into the given number of almost equal parts, and returns the size of part i.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// The test kills and pauses waiters too. Some of them are at the head of a queue. So a holder
// may hand the key to a process that is paused, or that is about to die.
func TestLocksStayExclusiveIfWaitersAreKilledOrPaused(t *testing.T) {
	t.Parallel()
	// Each of the two scenes (subtests) gets a fifth of the configured numbers of kills and pauses,
	// like each of the five scenes of TestLocksStayExclusiveDespiteKillsAndPauses.
	const scenes, workers, atATime = 5, 8, 4
	const longest = 2 * time.Second
	kills, pauses := count(t, killsVariable), count(t, pausesVariable)
	scene := func(i int, name string, prepare func(t *testing.T) *crew) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t)
			c.contended = keysOf(2) // two keys, so that four workers compete for each
			k, p := share(kills, i, scenes), share(pauses, i, scenes)
			c.torment(k, p, atATime, longest)
			f := verify(t, c.finish())
			lab.Want(t, "kills and pauses", [2]int{f.kills, f.pauses}, [2]int{k, p})
			if f.heads < (k+p)/5 {
				t.Errorf("only %d of %d faults hit the head of a queue", f.heads, k+p)
			}
			if holders := f.killedHolders + f.pausedHolders; holders < (k+p)/5 {
				t.Errorf("only %d of %d faults hit a holder", holders, k+p)
			}
		})
	}
	hire := func(c *crew, at place) *crew {
		for i := range workers {
			c.worker(task{Place: at, Keys: keysOf(2), Lease: longest / time.Duration(1+i%2)})
		}
		return c
	}
	scene(0, "dynoxide", func(t *testing.T) *crew {
		server := engines.Run(t, engines.Dynoxide)
		return hire(newCrew(t, "lserver", place{Endpoint: server.Endpoint}), connect(t, "line", server.Endpoint).place())
	})
	scene(1, "file", func(t *testing.T) *crew {
		at := place{File: t.TempDir() + "/locks.db"}
		return hire(newCrew(t, "lfile", at), at)
	})
}

func TestLocksStayExclusiveDespiteKillsAndPauses(t *testing.T) {
	t.Parallel()
	const scenes, workers, atATime = 5, 8, 4
	kills, pauses := count(t, killsVariable), count(t, pausesVariable)
	longest := 2 * time.Second
	scene := func(i int, name string, prepare func(t *testing.T) *crew) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t)
			k, p := share(kills, i, scenes), share(pauses, i, scenes)
			c.torment(k, p, atATime, longest)
			f := verify(t, c.finish())
			lab.Want(t, "kills and pauses", [2]int{f.kills, f.pauses}, [2]int{k, p})
			if f.killedHolders < k/4 || f.pausedHolders < p/4 {
				t.Errorf("too few faults of holders: %d kills and %d pauses", f.killedHolders, f.pausedHolders)
			}
		})
	}
	hire := func(c *crew, at place, shared bool) *crew {
		for i := range workers { // every second worker has only half of the longest lease
			c.worker(task{Place: at, Keys: keysOf(4), Lease: longest / time.Duration(1+i%2), Shared: shared})
		}
		return c
	}
	behind := func(t *testing.T, name string, e engines.Engine, shared bool) *crew {
		server := engines.Run(t, e)
		return hire(newCrew(t, name, place{Endpoint: server.Endpoint}), connect(t, e.Name, server.Endpoint).place(), shared)
	}
	for i, e := range engines.All() {
		scene(i, e.Name, func(t *testing.T) *crew { return behind(t, "k"+e.Name[:3], e, false) })
	}
	scene(4, "dynoxide, shared leases", func(t *testing.T) *crew { return behind(t, "kshared", engines.Dynoxide, true) })
	scene(2, "file", func(t *testing.T) *crew {
		at := place{File: t.TempDir() + "/locks.db"}
		return hire(newCrew(t, "kfile", at), at, false)
	})
	scene(3, "leasehold run", func(t *testing.T) *crew {
		at := place{File: t.TempDir() + "/locks.db"}
		c := newCrew(t, "krun", at)
		binary := buildCommand(t)
		for i := range workers {
			c.command(commandRun{
				// A shorter lease would leave the watchdog only a tenth of a second to kill CMD.
				binary: binary, at: at, key: keysOf(4)[i%4], lease: longest,
				shell: []string{"", aChild}[i/4],
			})
		}
		return c
	})
}

func TestMain(m *testing.M) {
	BeWorker()
	BeCommand()
	BeDisk()
	// These tests mostly wait for leases to expire, so more of them can run at the same time
	// than the machine has cores.
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // silences log messages that the proxy library writes to the global logger
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// verify reports all rules that the journal violates, and returns what it has counted in the
// journal.
func verify(t *testing.T, events []Event) figures {
	t.Helper()
	found := Verify(events, bound)
	for _, v := range found[:min(len(found), 20)] {
		t.Error(v)
	}
	if len(found) > 20 {
		t.Errorf("and %d more", len(found)-20)
	}
	f := figuresOf(events)
	t.Logf("%v; %d violations", f, len(found))
	return f
}
