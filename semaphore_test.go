package leasehold_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

func TestAPermitThatAnotherRecordIsInTheWayOfIsToldOf(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		other, _ := w.Client(lab.Config())
		inner, err := semaphore.New(other, "jobs/1", 2) // its row is the key of a permit of jobs
		if err != nil {
			t.Fatal(err)
		}
		slot, err := inner.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var events eventLog
		var book logBook
		cfg := lab.Config()
		cfg.OnEvent, cfg.Logger = events.onEvent, slog.New(slog.NewTextHandler(&book, nil))
		c, _ := w.Client(cfg)
		jobs, err := semaphore.New(c, "jobs", 2)
		if err != nil {
			t.Fatal(err)
		}
		held, err := jobs.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, waited := jobs.Acquire(ctx)
		_, tried := jobs.TryAcquire(t.Context())
		_, holders := jobs.Holders(t.Context())
		for what, err := range map[string]error{"a wait": waited, "a try": tried, "holders": holders} {
			if !errors.Is(err, leasehold.ErrRecord) || !strings.Contains(err.Error(), "jobs/1 in table locks") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", what, err)
			}
			if what != "holders" && !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if told := events.of(leasehold.EventWaitError); len(told) == 0 || told[0].Key.Partition != "jobs/1" {
			t.Errorf("told %v", told)
		} else if op := (*leasehold.OpError)(nil); !errors.Is(told[0].Err, leasehold.ErrRecord) || errors.As(told[0].Err, &op) {
			t.Errorf("told that a request had failed: %v", told[0].Err)
		}
		if log := strings.Join(book.lines(), "\n"); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "jobs/1") {
			t.Errorf("log %s", log)
		}
		w.Release(held)
		w.Release(slot)
	})
}
