//go:build linux

package processes

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

// broken returns the rules that the journal violates, without duplicates and sorted.
func broken(events []Event) []Rule {
	var rules []Rule
	for _, v := range Verify(events, bound) {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// must waits for an event of the named worker for which match returns true, and returns the
// event. It fails the test if no such event comes.
func (c *crew) must(who string, match func(Event) bool, what string) Event {
	c.t.Helper()
	e, ok := c.watcher.await(2*bound, func(e Event) bool { return e.Who == who && match(e) })
	if !ok {
		c.t.Fatalf("%s: no event: %s", who, what)
	}
	return e
}

func granted(e Event) bool { return e.Kind == Granted }

// first and second return the names of the first two workers of a crew (a group of worker
// processes).
func (c *crew) first() string  { return c.name + "-0.1" }
func (c *crew) second() string { return c.name + "-1.1" }

// pause suspends worker process i with SIGSTOP. The returned function continues the process.
func (c *crew) pause(i int) (goOn func()) {
	c.t.Helper()
	c.mu.Lock()
	p, who := c.slots[i].process, c.slots[i].who
	c.mu.Unlock()
	lab.OK(c.t, p.Stop())
	c.journal.write(Event{Who: who, Kind: Stopped})
	return func() {
		c.journal.write(Event{Who: who, Kind: Continued})
		lab.OK(c.t, p.Continue())
	}
}

// wantBroken calls the function scene once for each deliberate flaw of a worker. It compares
// the rules that the resulting journal violates with the expected rules.
func wantBroken(t *testing.T, breaks map[Flaw][]Rule, scene func(t *testing.T, flaw Flaw) *crew) {
	t.Parallel()
	for flaw, want := range breaks {
		t.Run(flaw.String(), func(t *testing.T) {
			t.Parallel()
			c := scene(t, flaw)
			lab.Want(t, "violated rules", broken(c.end()), want)
		})
	}
}

// The first worker's network fails, and the second worker takes the key over. A sound worker checks
// its lock and stops writing. With the flaw DeafToLoss, the first worker continues, but the counter
// refuses its old token. With NoComparison, the counter accepts the token.
func TestVerifyDetectsWritesAfterLockIsLost(t *testing.T) {
	// next is the result of the first worker's writes after its network is restored. A sound
	// worker writes only under a new grant.
	next := map[Flaw]Kind{Sound: Landed, DeafToLoss: Refused, NoComparison: Landed}
	breaks := map[Flaw][]Rule{Sound: nil, DeafToLoss: {TwoBelieve}, NoComparison: {StaleLanded, TwoBelieve}}
	wantBroken(t, breaks, func(t *testing.T, flaw Flaw) *crew {
		const lease = time.Second
		server := engines.Run(t, engines.Dynoxide)
		n := connect(t, "first", server.Endpoint)
		at := place{Endpoint: server.Endpoint}
		c := newCrew(t, "flaw", at)
		c.worker(task{Place: n.place(), Keys: keysOf(1), Lease: lease, Flaw: flaw, Hold: 6 * bound})
		c.must(c.first(), granted, "granted")
		c.worker(task{Place: at, Keys: keysOf(1), Lease: lease})
		n.down()
		took := c.must(c.second(), func(e Event) bool { return e.Kind == Granted && e.Dead != "" }, "a takeover")
		c.must(c.second(), func(e Event) bool { return e.Kind == Landed && e.Plain }, "a write of the second worker")
		n.up()
		up := now()
		// Here, a write counts only if the first worker sent it after n.up. The reply to an earlier
		// write may also arrive after n.up. If that write was sent before the second worker's write
		// was acknowledged, Verify does not call its token stale.
		sent := map[string]bool{}
		c.must(c.first(), func(e Event) bool {
			if e.Kind == Sent && e.At > up {
				sent[e.Write] = true
			}
			return e.Kind == next[flaw] && e.Plain && sent[e.Write] && (e.Token > took.Token) == (flaw == Sound)
		}, "an answer to a write that the first worker sent after the outage")
		return c
	})
}

func TestVerifyDetectsSuspendedWorkerThatIgnoresLossOfItsLock(t *testing.T) {
	wantBroken(t, map[Flaw][]Rule{Sound: nil, DeafToLoss: {Outlived}}, func(t *testing.T, flaw Flaw) *crew {
		const lease = time.Second
		at := place{File: t.TempDir() + "/locks.db"}
		c := newCrew(t, "deaf", at)
		c.worker(task{Place: at, Keys: keysOf(1), Lease: lease, Flaw: flaw, Hold: 6 * bound})
		c.must(c.first(), granted, "granted")
		goOn := c.pause(0)
		wait(lease + lease/2)
		went := now()
		goOn()
		// The worker may have read the clock for its Lost event before its suspension.
		want, from := Lost, time.Duration(0)
		if flaw != Sound {
			want, from = Believes, went
		}
		c.must(c.first(), func(e Event) bool { return e.Kind == want && e.At > from }, string(want))
		return c
	})
}

// The network delays the replies to the first worker, by just less than attempts.Limit. If that
// worker measures the lease from the reply, not from the request, it trusts its lock too long by
// this delay. The second worker observes a lease before the takeover, so it must start within this
// delay.
func TestVerifyDetectsLeaseMeasuredFromReplyInsteadOfRequest(t *testing.T) {
	wantBroken(t, map[Flaw][]Rule{Sound: nil, TrustsFromReply: {TwoBelieve}}, func(t *testing.T, flaw Flaw) *crew {
		const lease, late = 4 * time.Second, 2800 * time.Millisecond
		server := engines.Run(t, engines.Dynoxide)
		n := connect(t, "first", server.Endpoint)
		at := place{Endpoint: server.Endpoint}
		c := newCrew(t, "late", at)
		n.add(toxic{"latency", "downstream", map[string]int{"latency": int(late.Milliseconds())}})
		c.worker(task{Place: n.place(), Keys: keysOf(1), Lease: lease, Flaw: flaw, Hold: 6 * bound, Frozen: true, Idle: true})
		for again := time.NewTicker(5 * time.Millisecond); ; <-again.C {
			out := lab.Must(c.tables.db.GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: aws.String(lockTable), Key: itemKey(keysOf(1)[0]), ConsistentRead: aws.Bool(true),
			}))(t)
			if out.Item != nil {
				break // the key has been granted, but the reply has not arrived at the worker
			}
		}
		c.worker(task{Place: at, Keys: keysOf(1), Lease: lease})
		c.must(c.second(), granted, "granted")
		c.must(c.second(), func(e Event) bool { return e.Kind == Over }, "the end of the second worker's belief")
		return c
	})
}

// The test pauses a worker after the worker has read a counter and before it writes the counter.
// The worker writes only after the pause.
func TestVerifyDetectsOverwriteByResumedWorkerWithoutFencing(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	// The tables are on a server, because the suspended worker might keep the file of a local store
	// locked.
	at := place{Endpoint: engines.Run(t, engines.Dynoxide).Endpoint}
	c := newCrew(t, "bare", at)
	c.worker(task{Place: at, Keys: keysOf(1), Lease: lease, Flaw: Unfenced})
	c.must(c.first(), func(e Event) bool { return says(e, hasRead) }, hasRead)
	goOn := c.pause(0)
	c.worker(task{Place: at, Keys: keysOf(1), Lease: lease})
	var commits int
	c.must(c.second(), func(e Event) bool {
		if e.Kind == Landed && !e.Plain {
			commits++
		}
		return commits == 2
	}, "two commits of the second worker")
	went := now()
	goOn()
	c.must(c.first(), func(e Event) bool { return e.Kind == Landed && !e.Plain && e.At > went }, "the write of the first worker")
	if got := broken(c.end()); !slices.Contains(got, WrittenOver) {
		t.Errorf("violated rules: %q, want %q", got, WrittenOver)
	}
}
