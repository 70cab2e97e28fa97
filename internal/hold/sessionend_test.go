package hold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCloseReleasesAllLocksOfSessionInOneWrite(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg, log := lab.SharedConfig(), new(bytes.Buffer)
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		c, wire := w.Client(cfg)
		for i := range 20 {
			w.Acquire(c, fmt.Sprint("lock/", i))
		}
		wire.Sent()
		if err := c.Close(t.Context()); err != nil || log.Len() > 0 {
			t.Fatal(err, log)
		}
		if sent := wire.Sent(); len(sent) != 1 {
			t.Errorf("%d requests", len(sent))
		}
		other, otherWire := w.Client(lab.Config())
		for i := range 20 {
			lock, err := other.TryAcquire(t.Context(), fmt.Sprint("lock/", i))
			if err != nil {
				t.Fatal(err)
			}
			w.Release(lock)
		}
		// Each key needs a rejected grant, a grant and a release. The session is read only
		// once.
		if sent := otherWire.Sent(); len(sent) != 61 {
			t.Errorf("%d requests for 20 locks of a dead session", len(sent))
		}
	})
}

func TestCloseKeepsSessionWhileDoFunctionRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		w.Acquire(c, "free")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = c.Do(t.Context(), "busy", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		lab.Elapse(0)
		if err := c.Close(w.Within(3 * time.Second)); err == nil {
			t.Error("Close says nothing of the function that has not returned")
		}
		other, _ := w.Client(lab.Config())
		lock, err := other.TryAcquire(t.Context(), "free")
		if err != nil {
			t.Errorf("what nobody uses any more: %v", err)
		} else {
			w.Release(lock)
		}
		if _, err := other.TryAcquire(t.Context(), "busy"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("what is in use: %v", err)
		}
		close(stop)
		wg.Wait()
	})
}

func TestSessionIsNotCreatedAfterClose(t *testing.T) {
	lab.Each(t, map[string]time.Duration{
		"that waits for it": time.Minute, "that has no time": 0,
	}, func(t *testing.T, w *lab.World, limit time.Duration) {
		cfg := lab.SharedConfig()
		cfg.ReleaseGrace = time.Second
		c, wire := w.Client(cfg)
		wire.SetFault(lab.Once(lab.Call.Grants, lab.ArriveAfter(2*time.Second)))
		refused := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		lab.Elapse(time.Millisecond)
		_ = c.Close(w.Within(limit))
		lab.WantErr(t, "acquired", <-refused, leasehold.ErrClosed)
		lab.Elapse(10 * time.Second)
		w.WantSilence(wire, time.Minute)
		for _, row := range w.Sessions() {
			if lab.Text(w.Item(row), "dead") != "1" {
				t.Errorf("left behind: %v", w.Item(row))
			}
		}
	})
}

func TestReleaseAfterCloseOfSessionSucceedsWithoutRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire, lock := w.Holding(cfg)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wire.Sent()
		if err := lock.Release(t.Context()); err != nil { // the release that the caller had deferred
			t.Errorf("released again: %v", err)
		}
		if n := len(wire.Sent()); n != 0 || len(released()) != 1 {
			t.Errorf("%d requests after Close, releases reported: %v", n, released())
		}
	})
}

func TestLockIsNotReportedReleasedIfCloseCannotEndSession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire, lock := w.Holding(cfg)
		wire.SetFault(lab.Cut)
		lab.WantErr(t, "close", c.Close(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		if told := released(); len(told) != 1 || !errors.Is(told[0].Err, leasehold.ErrUnknownOutcome) {
			t.Errorf("reported %+v", told)
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil || !w.IsReleased("job") {
			t.Errorf("released again: %v, %v", err, w.Item("job"))
		}
		lab.Elapse(5 * time.Second) // let the last request of Close end
	})
}

func TestCloseReportsLossIfSomeoneElseEndedSession(t *testing.T) {
	remove := func(w *lab.World) { w.Delete(w.Sessions()[0]) }
	type row struct {
		applied bool // Close's first request to mark the row is applied
		lost    bool // it gets no answer
		happens func(w *lab.World)
		want    error
	}
	lab.Each(t, map[string]row{
		"deleted before Close":                       {false, false, remove, leasehold.ErrLost},
		"deleted behind Close's write, not answered": {true, true, remove, nil}, // no error, as the request of Close is the first that could end the session
		"marked dead before Close repeats its write": {false, true, func(w *lab.World) { w.MarkDead(w.Sessions()[0]) }, leasehold.ErrLost},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, _ := w.Holding(lab.SharedConfig())
		marks := func(sent lab.Call) bool { return sent.Sets("dead") }
		wire.SetFault(lab.Once(marks, func(r *lab.Request) (*http.Response, error) {
			if tc.applied {
				_, _ = r.Send()
			}
			tc.happens(w)
			if tc.lost {
				return nil, lab.ErrReset
			}
			return r.Send()
		}))
		if err := c.Close(t.Context()); !errors.Is(err, tc.want) {
			t.Errorf("close: %v, want %v", err, tc.want)
		}
	})
}

func TestCloseDoesNotReportSessionLostEarlier(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World, wire *lab.Wire){
		"deleted": func(w *lab.World, _ *lab.Wire) { w.Delete(w.Sessions()[0]); lab.Elapse(10 * time.Second) },
		"expired": func(_ *lab.World, wire *lab.Wire) {
			wire.SetFault(lab.Cut)
			lab.Elapse(30 * time.Second)
			wire.SetFault(nil)
		},
	}, func(t *testing.T, w *lab.World, lose func(w *lab.World, wire *lab.Wire)) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		lose(w, wire)
		if !errors.Is(lock.Err(), leasehold.ErrLost) {
			t.Fatalf("the lock: %v", lock.Err())
		}
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
	})
}

func TestGrantAnsweredAfterCloseIsNotReportedAsLoss(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		events := lab.Events(&cfg)
		c, wire := w.Client(cfg)
		w.Release(w.Acquire(c, "other"))
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(100*time.Millisecond)))
		ended := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		lab.WantErr(t, "acquire", <-ended, leasehold.ErrClosed)
		var told []leasehold.EventKind
		for _, e := range events() {
			if e.Key.Partition == "job" {
				told = append(told, e.Kind)
			}
		}
		if want := []leasehold.EventKind{leasehold.EventGaveUp, leasehold.EventReleased}; !slices.Equal(told, want) || !w.IsReleased("job") {
			t.Errorf("events %v, want %v; record %v", told, want, w.Item("job"))
		}
	})
}
