package behaviour_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// oneClient runs the given test in a synctest bubble, with one new client and the simulated network
// of that client.
func oneClient(t *testing.T, test func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire)) {
	t.Helper()
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		test(t, w, c, wire)
	})
}

// oneLock runs the given test in a synctest bubble, with one client that holds the key "job".
func oneLock(t *testing.T, test func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock)) {
	t.Helper()
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		test(t, w, c, wire, w.Acquire(c, "job"))
	})
}

// begin calls f in a goroutine. It returns a channel that receives the result of f.
func begin[R any](f func() R) <-chan R {
	result := make(chan R, 1)
	go func() { result <- f() }()
	return result
}

// eventLog collects the events and the log lines of a client.
type eventLog struct {
	mu     sync.Mutex
	events []leasehold.Event
	text   bytes.Buffer
}

// logged returns a new client, its simulated network, and an eventLog of its events and log lines.
func logged(w *lab.World, cfg leasehold.Config) (*leasehold.Client, *lab.Wire, *eventLog) {
	l := &eventLog{}
	cfg.OnEvent, cfg.Logger = l.onEvent, slog.New(slog.NewTextHandler(l, nil))
	c, wire := w.Client(cfg)
	return c, wire, l
}

func (l *eventLog) onEvent(_ context.Context, e leasehold.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// Write adds a log line to the collected text.
func (l *eventLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// The method "of" returns the events of the given kind.
func (l *eventLog) of(kind leasehold.EventKind) (found []leasehold.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// kinds returns the kind of each event.
func (l *eventLog) kinds() (kinds []leasehold.EventKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// lines returns the lines that the client has logged.
func (l *eventLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}

// The function "as" returns the first error of type E that err wraps, or nil.
func as[E error](err error) (found E) {
	errors.As(err, &found)
	return found
}

// wantCount fails the test unless exactly n of the calls satisfy the given predicate.
func wantCount(t *testing.T, what string, calls []lab.Call, is func(lab.Call) bool, n int) {
	t.Helper()
	lab.Want(t, what, lab.Count(calls, is), n)
}

// wantSent fails the test unless exactly n requests were sent since the last call of wire.Sent.
func wantSent(t *testing.T, wire *lab.Wire, n int) {
	t.Helper()
	if sent := wire.Sent(); len(sent) != n {
		t.Errorf("%d requests, want %d: %v", len(sent), n, lab.Ops(sent))
	}
}

// wantFree fails the test if the record of one of the keys shows a holder.
func wantFree(w *lab.World, keys []leasehold.Key) {
	w.T.Helper()
	for _, key := range w.HeldAmong(keys) {
		w.T.Errorf("held: %v", w.Item(key))
	}
}

// electionOf returns an election for key. It ignores the error of New, because the tests pass only
// valid keys.
func electionOf(c *leasehold.Client, key string) *election.Election {
	e, _ := election.New(c, key)
	return e
}

// Each function below calls a method of a client or a lock. It ends the test if the method returns
// an error.

func acquireAny(ctx context.Context, w *lab.World, c *leasehold.Client, keys []leasehold.Key, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	return lab.Must(c.AcquireAny(ctx, keys, opts...))(w.T)
}

// holds creates a client that acquires a key, and returns the lock.
func holds(w *lab.World, key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	w.T.Helper()
	c, _ := w.Client(lab.Config())
	return w.Acquire(c, key, opts...)
}

// share acquires the key of the given lock again, with Reentrant. It returns a second handle of the
// same grant.
func share(w *lab.World, c *leasehold.Client, lock *leasehold.Lock) *leasehold.Lock {
	w.T.Helper()
	return lab.Must(c.Acquire(lock.Context(), lock.Key().Partition, leasehold.Reentrant()))(w.T)
}

func renew(w *lab.World, lock *leasehold.Lock, opts ...leasehold.RenewOption) {
	w.T.Helper()
	lab.OK(w.T, lock.Renew(w.T.Context(), opts...))
}

func get(w *lab.World, c *leasehold.Client, key string) leasehold.Record {
	w.T.Helper()
	return lab.Must(c.Get(w.T.Context(), key))(w.T)
}

// breaks breaks the grant that the record r contains.
func breaks(w *lab.World, c *leasehold.Client, r leasehold.Record) {
	w.T.Helper()
	lab.OK(w.T, c.Break(w.T.Context(), r, leasehold.BreakOptions{}))
}

func closes(w *lab.World, clients ...*leasehold.Client) {
	w.T.Helper()
	for _, c := range clients {
		lab.OK(w.T, c.Close(w.T.Context()))
	}
}
