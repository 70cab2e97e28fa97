//go:build linux

package processes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// regionsForVariable is the environment variable that contains the duration of the test in
// which Regions fail in turn.
const regionsForVariable = "LEASEHOLD_REGIONS_FOR"

// longestRelease is the maximum duration of a release while one Region is down. The client waits
// one second for a reply, and then sends the release to another Region. The rest is for a machine
// that pauses for some seconds.
const longestRelease = 5 * time.Second

func TestLocksSurviveOutageOfEachRegionInTurn(t *testing.T) {
	long, shortest := 10*time.Second*time.Duration(len(ways)), 10*time.Second
	if text := os.Getenv(regionsForVariable); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", regionsForVariable, err)
		}
		shortest = 5 * time.Second // the shortest lease that docs/regions.md recommends: a lock is lost if the machine pauses for two seconds
	}
	for _, lease := range []time.Duration{shortest, 20 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			g := newGlobalTable(t)
			c := newCrew(t, "regions", g.direct)
			for i := range 8 {
				c.worker(task{Place: g.from(i%2, 2), Keys: keysOf(8), Lease: lease, Idle: true})
			}
			c.hold(4)
			chance := c.chance()
			began := now()
			for n := 0; now() < began+long; n++ {
				next := now() + 10*time.Second
				r, w := g.regions[chance.IntN(len(g.regions))], ways[n%len(ways)]
				c.dark(r, w)
				wait(4*time.Second + time.Duration(chance.Int64N(int64(5*time.Second))))
				r.lighten()
				if n%3 == 2 {
					c.killOne(chance)
				}
				wait(next - now())
			}
			f := c.endRegions()
			if f.lost > 0 || f.failed > 0 || f.release > longestRelease {
				t.Errorf("%d locks lost, %d releases failed, the longest release took %v", f.lost, f.failed, f.release)
			}
			if f.moves < f.broken/3 {
				t.Errorf("only %d moves while Regions were dark %d times", f.moves, f.broken)
			}
		})
	}
}

// TestMultiRegionLocksSurviveOutageOfHomeRegion counts how often processes leave their home Region.
// It does not run in parallel with other tests, because on a busy machine, late replies would make
// the processes leave more often.
func TestMultiRegionLocksSurviveOutageOfHomeRegion(t *testing.T) {
	t.Run("home has no address", outageOfHomeLosesLocksOfProcessesWithoutOtherRegion)
	t.Run("process starts in outage", processThatStartsInOutageOfHomeIsGranted)
	t.Run("home fails repeatedly", regionThatFlapsIsLeftOnce)
	t.Run("all Regions are slow", regionsThatAreAllSlowAreLeftOnce)
}

// outageOfHomeLosesLocksOfProcessesWithoutOtherRegion removes the address of the home Region for
// longer than a lease. Processes that know another Region must keep their locks. Processes that know
// only the home Region must lose their locks.
func outageOfHomeLosesLocksOfProcessesWithoutOtherRegion(t *testing.T) {
	const lease, dark, workers = 20 * time.Second, 30 * time.Second, 8
	t.Parallel()
	var crews []*crew
	g := newGlobalTable(t)
	for others, name := range []string{"one", "two", "three"} {
		c := newCrew(t, name, g.direct)
		for i := range workers {
			c.worker(task{Place: g.from(0, others), Keys: []string{name + keysOf(workers)[i]}, Lease: lease, Idle: true, Hold: dark + lease})
		}
		c.hold(workers)
		crews = append(crews, c)
	}
	wait(time.Second) // time in which the client learns that the table is strongly consistent
	for _, c := range crews {
		c.journal.write(Event{Kind: Broke, Text: string(noAddress)})
	}
	g.regions[0].darken(noAddress)
	wait(dark)
	g.regions[0].lighten()
	for others, c := range crews {
		f := c.endRegions()
		t.Logf("home without an address for %v, lease %v, %d Regions: lost %d of %d locks", dark, lease, 1+others, f.lost, workers)
		lab.Want(t, fmt.Sprint("lost locks in Regions: ", 1+others), f.lost, map[bool]int{true: workers}[others == 0])
	}
}

func processThatStartsInOutageOfHomeIsGranted(t *testing.T) {
	t.Parallel()
	g := newGlobalTable(t)
	c := newCrew(t, "start", g.direct)
	home := g.regions[0]
	for i, w := range ways {
		c.dark(home, w)
		key := keysOf(len(ways))[i]
		c.worker(task{Place: g.from(0, 2), Keys: []string{key}, Lease: 20 * time.Second, Idle: true})
		first := func(kind Kind) time.Duration {
			e, ok := c.watcher.await(bound, func(e Event) bool { return e.Kind == kind && e.Key == key })
			if !ok {
				t.Fatalf("%s: not %s within %v", w, kind, bound)
			}
			return e.At
		}
		asked := first(Asked)
		took := first(Granted) - asked
		t.Logf("%s: granted %v after the process started", w, took.Round(time.Millisecond))
		if took > 10*time.Second { // about three seconds if home is silent, see docs/regions.md; and time for a busy machine
			t.Errorf("%s: granted %v after the process started", w, took)
		}
		home.lighten()
	}
	lab.Want(t, "lost locks", c.endRegions().lost, 0)
}

// regionThatFlapsIsLeftOnce makes the home Region fail and recover several times. Each process
// must move away from the home Region only once, and return only after the home Region has
// served requests for thirty seconds.
func regionThatFlapsIsLeftOnce(t *testing.T) {
	t.Parallel()
	g := newGlobalTable(t)
	c := newCrew(t, "flap", g.direct)
	for _, key := range keysOf(4) {
		// A client probes the home Region only when it sends a request. So the hold is short: each
		// worker then sends requests all the time.
		c.worker(task{Place: g.from(0, 2), Keys: []string{key}, Lease: 20 * time.Second, Idle: true, Hold: time.Second / 2})
	}
	c.hold(4)
	for n := range 4 {
		c.dark(g.regions[0], ways[n])
		wait(11 * time.Second) // wait longer than the interval between two probes, even on a busy machine
		g.regions[0].lighten()
		wait(8 * time.Second)
	}
	served := now() - 8*time.Second
	home := map[string]time.Duration{}
	c.watcher.await(3*time.Minute, func(e Event) bool {
		if e.Kind == Moved && e.At > served && e.Text == regionNames[0] {
			home[e.Who] = (e.At - served).Round(time.Second)
		}
		return len(home) == 4
	})
	after := slices.Sorted(maps.Values(home))
	t.Logf("home after %v", after)
	f := c.endRegions()
	if f.lost > 0 || f.left != 4 || len(after) != 4 || after[0] < 30*time.Second {
		t.Errorf("%d lost; %d moves away from home, want 4, and 4 home; home after %v", f.lost, f.left, after)
	}
}

// regionsThatAreAllSlowAreLeftOnce makes every reply take 1.2 seconds. Once a Region has replied
// within one second, a client waits only one second for each later reply of this Region. So the
// client leaves its first Region. In the next Region it waits longer, so it must stay there. No
// lock may be lost.
func regionsThatAreAllSlowAreLeftOnce(t *testing.T) {
	t.Parallel()
	g := newGlobalTable(t)
	c := newCrew(t, "slow", g.direct)
	// Each worker has its own key. If four workers shared a key, only one of them would hold a
	// lock.
	for _, key := range keysOf(4) {
		c.worker(task{Place: g.from(0, 2), Keys: []string{key}, Lease: 20 * time.Second, Idle: true})
	}
	c.hold(4)
	for _, r := range g.regions {
		c.dark(r, sluggish)
	}
	wait(25 * time.Second)
	for _, r := range g.regions {
		r.lighten()
	}
	if f := c.endRegions(); f.lost > 0 || f.left > 4 {
		t.Errorf("%d lost, 4 processes left their first Region %d times", f.lost, f.left)
	}
}

// hold waits until the given number of different keys have been granted.
func (c *crew) hold(keys int) {
	c.t.Helper()
	granted := map[string]bool{}
	if _, ok := c.watcher.await(bound, func(e Event) bool {
		if e.Kind == Granted {
			granted[e.Key] = true
		}
		return len(granted) == keys
	}); !ok {
		c.t.Fatalf("%d of %d keys granted", len(granted), keys)
	}
}

// dark makes a Region fail in the given way, and records this in the journal.
func (c *crew) dark(r *region, w way) {
	c.journal.write(Event{Kind: Broke, Text: r.name + ": " + string(w)})
	r.darken(w)
}

// regionFigures contains counts and durations from the journal of a test on a global table.
type regionFigures struct {
	figures

	lost    int           // number of lost grants
	failed  int           // number of failed releases
	release time.Duration // duration of the longest release
	trust   time.Duration // shortest time for which a lock was still trusted after its first renewal, in a process that was not killed
	first   time.Duration // shortest time for which a lock was still trusted before its first renewal; separate, because the lease of a hand-over is shorter
	moves   int           // number of moves between Regions; the first event of each process does not count
	left    int           // number of moves away from the first of regionNames
}

func (f regionFigures) String() string {
	return fmt.Sprintf("%d times dark, %d grants, %d killed; %d lost, %d moves; the longest release took %v, the least trust left was %v before the first renewal of a grant, %v after it",
		f.broken, f.grants, f.kills, f.lost, f.moves, f.release.Round(time.Millisecond), f.first.Round(100*time.Millisecond), f.trust.Round(100*time.Millisecond))
}

// endRegions ends the workers of a test on a global table, reports each rule that their journal
// violates, and returns the figures. It also checks that each key can then be acquired within the
// lease plus bound.
func (c *crew) endRegions() regionFigures {
	c.t.Helper()
	events := c.end()
	leases := map[string]time.Duration{}
	for _, e := range events {
		if e.Kind == Asked {
			leases[e.Key] = e.Lease
		}
	}
	var free sync.WaitGroup
	for key, lease := range leases {
		free.Go(func() {
			ctx, cancel := context.WithTimeout(c.t.Context(), lease+bound)
			defer cancel()
			lock, err := c.locks.Acquire(ctx, key)
			if err == nil {
				err = lock.Release(ctx)
			}
			if err != nil {
				c.t.Errorf("%s is not granted again: %v", key, err)
			}
		})
	}
	free.Wait()
	f := regionFigures{figures: verify(c.t.(*testing.T), events), trust: time.Hour, first: time.Hour}
	over, at, lost := map[grantID]time.Duration{}, map[string]string{}, map[grantID]bool{}
	granted := map[grantID]time.Duration{} // end of trust of each grant, as first recorded
	for _, e := range events {
		id := grantID{e.Who, e.Grant}
		switch e.Kind {
		case Granted:
			granted[id] = e.Until
		case Believes:
			least := &f.trust
			if e.Until < granted[id]+100*time.Millisecond { // within this tolerance, the end of trust is unchanged, so the lock has not been renewed
				least = &f.first
			}
			*least = min(*least, e.Until-e.At)
		case Over:
			over[id] = e.At
		case Released:
			f.release = max(f.release, e.At-over[id])
		case Denied:
			if strings.HasPrefix(e.Text, "release: ") {
				f.failed++
				c.t.Log(e.Who, e.Key, e.Text)
			}
		case Lost:
			lost[id] = true
		case Moved:
			if at[e.Who] != "" {
				f.moves++
			}
			if at[e.Who] == regionNames[0] {
				f.left++
			}
			at[e.Who] = e.Text
		}
	}
	f.lost = len(lost)
	c.t.Log(f)
	return f
}
