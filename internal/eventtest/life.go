package eventtest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// Life contains the totals of the events that Live caused.
type Life struct {
	Grants      map[string]int // number of grants for each value of the adapters' label "how"; the value says how the key was acquired
	Lost        map[leasehold.LostReason]int
	Held        []time.Duration // how long each grant was held, shortest first
	Renewals    int
	RenewErrors int
	Throttled   int
	Commits     map[string]int // number of commits for each value of the adapters' label "outcome"
	Unreleased  int            // number of releases that returned an error
	Done        int            // number of acquisitions with option Once that found the work already done
	Requests    int
}

// Live runs a client in a bubble of testing/synctest, and sends the client's events to onEvent.
// It passes ctx to every method of the client. When Live returns, the client holds no key.
func Live(ctx context.Context, t *testing.T, onEvent func(context.Context, leasehold.Event)) Life {
	t.Helper()
	w := New(t)
	var renewals, failures atomic.Int64
	c, wire := w.Client(func(ctx context.Context, e leasehold.Event) {
		// Count the renewals and the failed renewals here: their numbers differ from run to
		// run, so Live cannot return constants for them.
		switch e.Kind {
		case leasehold.EventRenewed:
			renewals.Add(1)
		case leasehold.EventRenewError:
			failures.Add(1)
		}
		onEvent(ctx, e)
	})
	other, otherWire := w.Client(nil)
	life := Life{
		Grants: map[string]int{"free": 7, "taken_over": 1, "handed_over": 1},
		Lost:   map[leasehold.LostReason]int{leasehold.LostExpired: 1, leasehold.LostBroken: 2},
	}

	// The client acquires a free key. Then a second goroutine of the client waits for that key.
	first := w.Acquire(ctx, c, "free")
	next := make(chan *leasehold.Lock, 1)
	go func() { next <- w.Acquire(ctx, c, "free") }()
	lab.Elapse(time.Second)
	w.Release(first)
	second := <-next
	lab.Elapse(2 * time.Second)
	w.Release(second)
	life.Held = append(life.Held, time.Second, 2*time.Second)

	// A second client acquires a key. Then the network to this client is cut, as if the client
	// had died. The first client takes over the key.
	w.Acquire(ctx, other, "dead")
	lab.Elapse(time.Second)
	otherWire.Cut()
	heir := w.Acquire(ctx, c, "dead")
	lab.Elapse(3 * time.Second)
	w.Release(heir)
	otherWire.Mend()
	life.Held = append(life.Held, 3*time.Second)

	// The client acquires the key of a one-time job (option Once) twice. The second call
	// finds that the job is done.
	once, err := c.Acquire(ctx, "once", leasehold.Once("label"))
	if err != nil {
		t.Fatal(err)
	}
	lab.Elapse(6 * time.Second)
	if err := once.Release(ctx, leasehold.MarkDone()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Acquire(ctx, "once", leasehold.Once("label")); !errors.Is(err, leasehold.ErrDone) {
		t.Fatal(err)
	}
	life.Held = append(life.Held, 6*time.Second)
	life.Done = 1

	// DynamoDB throttles one grant request and one renewal request.
	wire.Throttle("UpdateItem")
	long := w.Acquire(ctx, c, "long")
	lab.Elapse(time.Second)
	wire.Throttle("UpdateItem")
	lab.Elapse(5*time.Minute - time.Second)
	life.Throttled = 2

	// The client commits twice: one commit fails, and one is applied.
	var failed *leasehold.CommitError
	if err := long.Commit(ctx, []types.TransactWriteItem{missing()}); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if err := long.CommitAndRelease(ctx, nil); err != nil {
		t.Fatal(err)
	}
	life.Commits = map[string]int{"landed": 1, "failed": 1}
	life.Held = append(life.Held, 5*time.Minute)

	// An operator breaks two locks. A renewal discovers the first break, and a release
	// discovers the second.
	granted := time.Now()
	broken := w.Acquire(ctx, c, "broken")
	w.Break(other, "broken")
	<-broken.Context().Done()
	found := broken.Err().(*leasehold.LostError)
	life.Held = append(life.Held, found.At.Sub(granted))
	release(ctx, t, broken)
	late := w.Acquire(ctx, c, "broken")
	lab.Elapse(time.Second)
	w.Break(other, "broken")
	release(ctx, t, late)
	life.Held = append(life.Held, time.Second)

	// The network loses the requests of a release.
	stuck := w.Acquire(ctx, c, "stuck")
	lab.Elapse(4 * time.Second)
	wire.Cut()
	if err := stuck.Release(ctx); err == nil || errors.Is(err, leasehold.ErrLost) {
		t.Fatalf("release without a network: %v", err)
	}
	wire.Mend()
	lab.Elapse(2 * time.Second) // the client repeats the release in the background, and DynamoDB applies it
	life.Unreleased = 1
	life.Held = append(life.Held, 4*time.Second)

	// The network fails for longer than a lease. When the client releases the lock, another
	// client already holds the key.
	expired := w.Acquire(ctx, c, "expired")
	wire.Cut()
	<-expired.Context().Done()
	w.Acquire(ctx, other, "expired")
	wire.Mend()
	release(ctx, t, expired)
	life.Held = append(life.Held, lease-lease/10)

	synctest.Wait()
	for _, c := range []*leasehold.Client{c, other} {
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	life.Renewals, life.RenewErrors = int(renewals.Load()), int(failures.Load())
	// Subtract the renewal that found the lock broken. No event counts this request, because the
	// event for a lost lock does not contain the number of requests.
	life.Requests = len(wire.Sent()) - 1
	slices.Sort(life.Held)
	return life
}

// release releases a lock that has been lost, and fails the test unless Release returns
// ErrLost.
func release(ctx context.Context, t testing.TB, lock *leasehold.Lock) {
	t.Helper()
	if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrLost) {
		t.Fatalf("release of %v: %v", lock.Key(), err)
	}
}
