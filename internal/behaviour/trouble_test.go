package behaviour_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// waits are calls that keep waiting while DynamoDB does not answer.
var waits = map[string]func(ctx context.Context, c *leasehold.Client) error{
	"acquire": func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "job")) },
	"all": func(ctx context.Context, c *leasehold.Client) error {
		return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("job", "z")))
	},
	"any": func(ctx context.Context, c *leasehold.Client) error {
		return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("job", "z")))
	},
}

func TestWaitReportsUnreachableEndpointOnceAMinute(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire, events := logged(w, lab.Config())
				wire.SetFault(lab.Drop)
				ctx := w.Within(10*time.Minute + time.Second)
				over := begin(func() error { return wait(ctx, c) })
				lab.Elapse(5 * time.Second)
				if told := events.of(leasehold.EventWaitError); len(told) != 1 || !errors.Is(told[0].Err, lab.ErrReset) || told[0].Key.Partition != "job" {
					t.Errorf("wait errors after five seconds: %v", told)
				} else if op := (*leasehold.OpError)(nil); !errors.As(told[0].Err, &op) || op.Op != "acquire" || op.Table != "locks" || op.Key.Partition != "job" {
					t.Errorf("the error lacks its operation, table or key: %v", told[0].Err)
				}
				err := <-over
				lab.WantRange(t, "wait errors reported in ten minutes", len(events.of(leasehold.EventWaitError)), 9, 11)
				lines := events.lines()
				lab.WantRange(t, "lines in ten minutes", len(lines), 9, 11)
				for _, part := range []string{"level=WARN", "table=locks", "key=job", lab.ErrReset.Error()} {
					if !strings.Contains(lines[0], part) {
						t.Errorf("%q is missing in: %s", part, lines[0])
					}
				}
				gone := events.of(leasehold.EventGaveUp)
				if len(gone) != 1 || gone[0].Took < 10*time.Minute || gone[0].Err.Error() != err.Error() || gone[0].Key.Partition != "job" {
					t.Errorf("gave up: %+v, returned %v", gone, err)
				}
				closes(w, c)
			})
		})
	}
}

func TestGiveUpEventIsEmittedByAcquireButNotByTryAcquire(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, other *leasehold.Client, _ *lab.Wire) {
		w.Acquire(other, "job")
		c, wire, events := logged(w, lab.Config())
		lab.WantErr(t, "TryAcquire of a held key", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		lab.Want(t, "EventGaveUp of TryAcquire", len(events.of(leasehold.EventGaveUp)), 0)
		wire.Sent()
		_, err := c.Acquire(w.Within(10*time.Second), "job")
		sent := len(wire.Sent())
		if gone := events.of(leasehold.EventGaveUp); len(gone) != 1 || gone[0].Took != 10*time.Second || gone[0].Requests != sent || !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a wait of %d requests: %+v, %v", sent, gone, err)
		}
		for _, c := range []*leasehold.Client{c, other} {
			closes(w, c)
		}
	})
}

func TestAllFailingWaitsOfClientShareOneLogLinePerMinute(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, events := logged(w, lab.Config())
		wire.SetFault(lab.Cut)
		ctx := w.Within(90 * time.Second)
		var waiting sync.WaitGroup
		for i := range 100 {
			waiting.Go(func() { _, _ = c.Acquire(ctx, string(rune('a'+i%26))+string(rune('a'+i/26))) })
		}
		waiting.Wait()
		lab.Want(t, "lines", len(events.lines()), 2)
		if last := events.lines()[1]; !strings.Contains(last, "waiting=100") {
			t.Errorf("line %s", last)
		}
		if told, gone := len(events.of(leasehold.EventWaitError)), len(events.of(leasehold.EventGaveUp)); told != 200 || gone != 100 {
			t.Errorf("%d EventWaitError and %d EventGaveUp, want 200 and 100", told, gone)
		}
		_ = c.Close(t.Context())
	})
}

func TestObserveReportsFailingReadsOnceAMinute(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, events := logged(w, lab.Config())
		e := electionOf(c, "scheduler")
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
		lab.WantRange(t, "wait errors reported in two minutes", len(events.of(leasehold.EventWaitError)), 2, 3)
		if lines := events.lines(); !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "key=scheduler") {
			t.Errorf("log %v", lines)
		}
		stop()
		lab.WantErr(t, "Observe", <-ended, nil)
	})
}

func TestLogsOfLostLocksAndFailedReleasesContainTableName(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var said bytes.Buffer
		cfg := lab.Config()
		cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		c, wire := w.Client(cfg)
		lost, kept := w.Acquire(c, "lost"), w.Acquire(c, "kept")
		breaks(w, c, lost.Record())
		_ = lost.Renew(t.Context())
		wire.SetFault(lab.Refused("AccessDeniedException"))
		_ = kept.Release(t.Context())
		cfg.SharedLease = true
		sharing, itsWire := w.Client(cfg)
		w.Acquire(sharing, "shared")
		itsWire.SetFault(lab.Refused("AccessDeniedException"))
		_ = sharing.Close(t.Context())
		for _, what := range []string{"lock lost", "release failed", "the session could not be ended"} {
			named := false
			for line := range strings.Lines(said.String()) {
				named = named || strings.Contains(line, what) && strings.Contains(line, "table=locks")
			}
			if !named {
				t.Errorf("%q does not name the table:\n%s", what, said.String())
			}
		}
	})
}

func TestLogsOfLocksAndRecordsOmitTheirData(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock := holds(w, "job", leasehold.WithData([]byte("secret")),
			leasehold.WithAttributes(map[string]types.AttributeValue{"mine": lab.Str("secret")}))
		record := lock.Record()
		token := fmt.Sprint(lock.Token())
		lab.Want(t, "text of a lock", fmt.Sprint(lock), "job in table locks (token "+token+")")
		lab.Want(t, "text of locks without a grant", fmt.Sprint((*leasehold.Lock)(nil), &leasehold.Lock{}), "no lock no lock")
		for name, handler := range map[string]func(io.Writer) slog.Handler{
			"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
			"JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		} {
			for what, value := range map[string]any{"lock": lock, "record": record} {
				var said bytes.Buffer
				slog.New(handler(&said)).Info("", "it", value)
				for _, part := range []string{"job", token} {
					if !strings.Contains(said.String(), part) {
						t.Errorf("a %s as %s, without %q: %s", what, name, part, &said)
					}
				}
				// The log must not contain the data as text, as base64 or as bytes. It must not
				// contain a memory address either.
				for _, part := range []string{"secret", "c2VjcmV0", "115 101", "0xc"} {
					if strings.Contains(said.String(), part) {
						t.Errorf("a %s as %s, with %q: %s", what, name, part, &said)
					}
				}
			}
		}
	})
}
