package behaviour_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// of returns the events of the given kind.
func (l *eventLog) of(kind leasehold.EventKind) []leasehold.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []leasehold.Event
	for _, e := range l.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// logBook is a log that a test reads.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBook) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.buf.String(), "\n"), "\n")
}

// waits are the calls that wait for DynamoDB.
var waits = map[string]func(ctx context.Context, c *leasehold.Client) error{
	"acquire": func(ctx context.Context, c *leasehold.Client) error {
		_, err := c.Acquire(ctx, "job")
		return err
	},
	"all": func(ctx context.Context, c *leasehold.Client) error {
		_, err := c.AcquireAll(ctx, leasehold.Keys("job", "z"))
		return err
	},
	"any": func(ctx context.Context, c *leasehold.Client) error {
		_, err := c.AcquireAny(ctx, leasehold.Keys("job", "z"))
		return err
	},
}

func TestWaitOnUnreachableEndpointIsReportedOnceAMinute(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var events eventLog
				var book logBook
				cfg := lab.Config()
				cfg.OnEvent, cfg.Logger = events.onEvent, slog.New(slog.NewTextHandler(&book, nil))
				c, wire := w.Client(cfg)
				wire.SetFault(func(*lab.Request) (*http.Response, error) {
					return nil, lab.ErrReset
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
				defer cancel()
				over := make(chan error, 1)
				go func() { over <- wait(ctx, c) }()
				lab.Elapse(5 * time.Second)
				if told := events.of(leasehold.EventWaitError); len(told) != 1 || !errors.Is(told[0].Err, lab.ErrReset) || told[0].Key.Partition != "job" {
					t.Errorf("told after five seconds: %v", told)
				} else if op := (*leasehold.OpError)(nil); !errors.As(told[0].Err, &op) || op.Op != "acquire" || op.Table != "locks" || op.Key.Partition != "job" {
					t.Errorf("told without what was asked of which table: %v", told[0].Err)
				}
				err := <-over
				if n := len(events.of(leasehold.EventWaitError)); n < 9 || n > 11 {
					t.Errorf("told %d times in ten minutes", n)
				}
				lines := book.lines()
				if len(lines) < 9 || len(lines) > 11 {
					t.Errorf("%d lines in ten minutes", len(lines))
				}
				for _, part := range []string{"level=WARN", "table=locks", "key=job", lab.ErrReset.Error()} {
					if !strings.Contains(lines[0], part) {
						t.Errorf("%q is missing in: %s", part, lines[0])
					}
				}
				gone := events.of(leasehold.EventGaveUp)
				if len(gone) != 1 || gone[0].Took < 10*time.Minute || gone[0].Err.Error() != err.Error() || gone[0].Key.Partition != "job" {
					t.Errorf("gave up: %+v, returned %v", gone, err)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestEventGaveUpIsReportedForWaitButNotForTry(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		w.Acquire(other, "job")
		var events eventLog
		cfg := lab.Config()
		cfg.OnEvent = events.onEvent
		c, _ := w.Client(cfg)
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Fatal(err)
		}
		if gone := events.of(leasehold.EventGaveUp); len(gone) != 0 {
			t.Errorf("a try: %+v", gone)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Acquire(ctx, "job")
		if gone := events.of(leasehold.EventGaveUp); len(gone) != 1 || gone[0].Took != 10*time.Second || !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a wait: %+v, %v", gone, err)
		}
		for _, c := range []*leasehold.Client{c, other} {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFailingWaitsLogOneLineAMinuteTogether(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var events eventLog
		var book logBook
		cfg := lab.Config()
		cfg.OnEvent, cfg.Logger = events.onEvent, slog.New(slog.NewTextHandler(&book, nil))
		c, wire := w.Client(cfg)
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		var waiting sync.WaitGroup
		for i := range 100 {
			waiting.Go(func() { _, _ = c.Acquire(ctx, string(rune('a'+i%26))+string(rune('a'+i/26))) })
		}
		waiting.Wait()
		if n := len(book.lines()); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
		if last := book.lines()[1]; !strings.Contains(last, "waiting=100") {
			t.Errorf("line %s", last)
		}
		if told, gone := len(events.of(leasehold.EventWaitError)), len(events.of(leasehold.EventGaveUp)); told != 200 || gone != 100 {
			t.Errorf("%d events of trouble and %d of the end, want 200 and 100", told, gone)
		}
		_ = c.Close(t.Context())
	})
}

func TestObserverReportsFailingRequests(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var events eventLog
		var book logBook
		cfg := lab.Config()
		cfg.OnEvent, cfg.Logger = events.onEvent, slog.New(slog.NewTextHandler(&book, nil))
		c, wire := w.Client(cfg)
		e, err := election.New(c, "scheduler")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			var last error
			for _, err := range e.Observe(ctx) {
				last = err
			}
			ended <- last
		}()
		synctest.Wait()
		wire.SetFault(lab.Cut)
		lab.Elapse(2 * time.Minute)
		if n := len(events.of(leasehold.EventWaitError)); n < 2 || n > 3 {
			t.Errorf("told %d times in two minutes", n)
		}
		if lines := book.lines(); !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "key=scheduler") {
			t.Errorf("log %v", lines)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
