package lab

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Each runs a test once for each case, as a subtest with the name of the case. Each subtest has
// its own World, and its own synctest bubble (InBubble).
func Each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, w *World, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			InBubble(t, func(t *testing.T, w *World) { test(t, w, c) })
		})
	}
}

// Variants is like Each, for tests without a World and a bubble.
func Variants[C any](t *testing.T, cases map[string]C, test func(t *testing.T, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// ParallelVariants is like Variants, but the subtests run in parallel.
func ParallelVariants[C any](t *testing.T, cases map[string]C, test func(t *testing.T, c C)) {
	t.Helper()
	Variants(t, cases, func(t *testing.T, c C) {
		t.Parallel()
		test(t, c)
	})
}

// Leases returns two cases for Each. In one case, each lock has its own lease. In the other case,
// all locks of a client share one lease.
func Leases() map[string]leasehold.Config {
	return map[string]leasehold.Config{"a lease each": Config(), "a shared lease": SharedConfig()}
}

// IsQuick reports whether a long test should try fewer cases. It returns true under the race
// detector, which makes a test take five times as long, and with the flag -short of "make test".
// The command "make check" also runs long tests with all cases.
func IsQuick() bool { return Race || testing.Short() }

// Cases returns its second argument if IsQuick returns true, and otherwise its first argument.
func Cases[T any](all, quick T) T {
	if IsQuick() {
		return quick
	}
	return all
}

// SkipUnderRace skips a test under the race detector. The parameter "reason" says why: for example,
// because the detector cannot find anything in the test, or because it disturbs the test.
func SkipUnderRace(t *testing.T, reason string) {
	t.Helper()
	if Race {
		t.Skipf("%s: runs only without the race detector", reason)
	}
}

// Go starts a goroutine that calls fn, and waits until the goroutine is blocked or has ended. It
// returns a channel that receives the error that fn returns.
func Go(fn func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- fn() }()
	synctest.Wait()
	return ended
}

// Within returns a context that expires after d, or ends earlier if the test ends.
func (w *World) Within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.T.Context(), d)
	w.T.Cleanup(cancel)
	return ctx
}

// Ended returns a context that has already been cancelled.
func (w *World) Ended() context.Context {
	ctx, cancel := context.WithCancel(w.T.Context())
	cancel()
	return ctx
}

// Holding returns a new client, the client's Wire, and the client's lock of the key "job".
func (w *World) Holding(cfg leasehold.Config, opts ...leasehold.AcquireOption) (*leasehold.Client, *Wire, *leasehold.Lock) {
	w.T.Helper()
	c, wire := w.Client(cfg)
	return c, wire, w.Acquire(c, "job", opts...)
}

// Resume resumes a grant. It ends the test if the call fails.
func (w *World) Resume(c *leasehold.Client, g leasehold.Grant, opts ...leasehold.RenewOption) *leasehold.Lock {
	w.T.Helper()
	lock, err := c.Resume(w.T.Context(), g, opts...)
	if err != nil {
		w.T.Fatal(err)
	}
	return lock
}

// Break breaks the grant of a lock. It ends the test if the call fails.
func (w *World) Break(c *leasehold.Client, lock *leasehold.Lock, reason string) {
	w.T.Helper()
	if err := c.Break(w.T.Context(), lock.Record(), leasehold.BreakOptions{Reason: reason}); err != nil {
		w.T.Fatal(err)
	}
}

// WantSilence lets virtual time pass. It fails the test if the client of the given Wire sends a
// request in that time.
func (w *World) WantSilence(wire *Wire, during time.Duration) {
	w.T.Helper()
	wire.Sent()
	Elapse(during)
	if sent := wire.Sent(); len(sent) > 0 {
		w.T.Errorf("%d requests in %v, want none: %v", len(sent), during, Ops(sent))
	}
}

// Events changes cfg so that every client with this Config records its events: those of the given
// kinds, or all if no kinds are given. Events returns a function that returns the events recorded
// so far.
func Events(cfg *leasehold.Config, kinds ...leasehold.EventKind) func() []leasehold.Event {
	var mu sync.Mutex
	var events []leasehold.Event
	cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
		if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}
	}
	return func() []leasehold.Event {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(events)
	}
}

// WantErr fails the test unless err matches the error "want" and all errors in "also". If want is
// nil, err must be nil. The parameter "what" names the call that returned err.
func WantErr(t testing.TB, what string, err, want error, also ...error) {
	t.Helper()
	for _, want := range append(also, want) {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}
