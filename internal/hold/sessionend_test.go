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
		w.AcquireMany(c, "lock", 20)
		wire.Sent()
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		lab.Want(t, "length of the log", log.Len(), 0)
		lab.Want(t, "requests", len(wire.Sent()), 1)
		other, otherWire := w.Client(lab.Config())
		for i := range 20 {
			w.Release(lab.Must(other.TryAcquire(t.Context(), fmt.Sprint("lock/", i)))(t))
		}
		// Each of the 20 keys needs a rejected grant, a grant and a release. The session is
		// read only once, for the first key.
		lab.Want(t, "requests for 20 locks of a dead session", len(otherWire.Sent()), 61)
	})
}

func TestCloseDoesNotMarkSessionDeadWhileCallbackOfMethodDoRuns(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		w.Acquire(c, "free")
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = c.Do(t.Context(), "busy", func(context.Context, *leasehold.Lock) error { <-stop; return nil })
		})
		lab.Elapse(0)
		lab.WantFailed(t, "close while a function runs", c.Close(w.Within(3*time.Second)))
		other, _ := w.Client(lab.Config())
		w.Release(lab.Must(other.TryAcquire(t.Context(), "free"))(t))
		lab.WantErr(t, "key in use", lab.ErrorOf(other.TryAcquire(t.Context(), "busy")), leasehold.ErrHeld)
		close(stop)
		wg.Wait()
	})
}

func TestSessionIsNotCreatedAfterClose(t *testing.T) {
	lab.Each(t, map[string]time.Duration{
		"Close waits": time.Minute, "Close has no time": 0,
	}, func(t *testing.T, w *lab.World, limit time.Duration) {
		cfg := lab.SharedConfig()
		cfg.ReleaseGrace = time.Second
		c, wire := w.Client(cfg)
		wire.SetFault(lab.Once(lab.Call.Grants, lab.ArriveAfter(2*time.Second)))
		refused := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "job")) })
		lab.Elapse(time.Millisecond)
		_ = c.Close(w.Within(limit))
		lab.WantErr(t, "acquire", <-refused, leasehold.ErrClosed)
		lab.Elapse(10 * time.Second)
		w.WantSilence(wire, time.Minute)
		for _, row := range w.Sessions() {
			lab.Want(t, "mark of the dead session", lab.Text(w.Item(row), "dead"), "1")
		}
	})
}

func TestReleaseAfterCloseSendsNoRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire, lock := w.Holding(cfg)
		lab.OK(t, c.Close(t.Context()))
		wire.Sent()
		// A caller often defers Release, so it may follow Close.
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		lab.Want(t, "requests after Close", len(wire.Sent()), 0)
		lab.Want(t, "releases reported", len(released()), 1)
	})
}

func TestReleaseTimeReportedByCloseIncludesWaitForCommit(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		released := lab.Events(&cfg, leasehold.EventReleased)
		began := time.Now()
		c, wire, lock := w.Work().Holding(cfg)
		wire.SetFault(lab.Once(lab.Call.Commits, lab.Slow(2*time.Second)))
		committed := lab.Go(func() error { return lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))) })
		lab.Elapse(time.Second)
		lab.OK(t, c.Close(t.Context())) // ends the trust at once, and waits for the commit
		lab.OK(t, <-committed)
		e := released()[0]
		lab.Want(t, "time until the hold began", e.Time.Add(-e.Took-e.Held).Sub(began), 0)
	})
}

func TestEventReleasedContainsErrorIfCloseOfClientFails(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.SharedConfig()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire, lock := w.Holding(cfg)
		wire.SetFault(lab.Cut)
		lab.WantErr(t, "close", c.Close(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		if told := released(); len(told) != 1 || !errors.Is(told[0].Err, leasehold.ErrUnknownOutcome) {
			t.Errorf("released events: %+v", told)
		}
		wire.SetFault(nil)
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		w.WantReleased("job")
		lab.Elapse(5 * time.Second) // let the last request of Close end
	})
}

func TestCloseReturnsErrLostOnlyIfAnotherClientEndedSession(t *testing.T) {
	remove := func(w *lab.World) { w.Delete(w.Sessions()[0]) }
	type row struct {
		applied bool // if true, the first write by which Close ends the session is applied
		lost    bool // if true, that write gets no reply
		happens func(w *lab.World)
		want    error
	}
	lab.Each(t, map[string]row{
		"deleted before Close": {false, false, remove, leasehold.ErrLost},
		// Close returns no error: the row existed when Close sent its write, so this write may
		// have ended the session.
		"deleted after Close's write, no reply":      {true, true, remove, nil},
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
		lab.WantErr(t, "close", c.Close(t.Context()), tc.want)
	})
}

func TestCloseReturnsNilIfSessionIsAlreadyLost(t *testing.T) {
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
		lab.WantErr(t, "lock", lock.Err(), leasehold.ErrLost)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
	})
}

func TestGrantWhoseReplyArrivesDuringCloseIsReleased(t *testing.T) {
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

// leavesGrantUnanswered returns a client and its simulated network. The client holds the
// lock "other" under its session. It has also sent a grant of "job", whose caller was
// cancelled before the reply.
func leavesGrantUnanswered(w *lab.World, cfg leasehold.Config, fault lab.Fault) (*leasehold.Client, *lab.Wire) {
	w.T.Helper()
	c, wire := w.Client(cfg)
	w.Acquire(c, "other")
	wire.SetFault(lab.Once(lab.Call.Grants, fault))
	lab.WantFailed(w.T, "acquire without a reply", lab.ErrorOf(c.Acquire(w.Within(time.Second), "job")))
	return c, wire
}

func TestGrantAppliedAfterTimeoutOfAcquireIsUndone(t *testing.T) {
	type variant struct{ late, unreadable time.Duration }
	lab.Each(t, map[string]variant{
		"8 seconds late": {late: 8 * time.Second}, "10 minutes late": {late: 10 * time.Minute},
		"key cannot be read for 20 minutes": {8 * time.Second, 20 * time.Minute},
	}, func(t *testing.T, w *lab.World, v variant) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Delayed(v.late)))
		lab.WantFailed(t, "acquire without a reply", lab.ErrorOf(c.Acquire(w.Within(10*time.Millisecond), "job")))
		wire.SetFault(lab.On(lab.Call.Reads, lab.Refused("AccessDeniedException")))
		lab.Elapse(v.unreadable)
		wire.SetFault(nil)
		lab.Elapse(v.late)
		if item := w.Item("job"); item == nil || lab.Text(item, "isReleased") != "" {
			t.Fatalf("bad setup: the grant was not applied: %v", item)
		}
		waiter, _ := w.Client(lab.Config())
		began := time.Now()
		lock, err := waiter.Acquire(w.Within(3*time.Hour), "job")
		if took := time.Since(began); err != nil || took > 2*time.Minute+5*time.Second {
			t.Fatalf("granted after %v: %v", took, err)
		}
		lab.Elapse(time.Hour)
		lab.WantErr(t, "lock", lock.Err(), nil)
		w.Release(lock)
		wire.Sent()
		lab.Elapse(time.Minute)
		sent := wire.Sent()
		lab.Want(t, "renewals among the requests an hour later", lab.Count(sent, lab.Call.Renews), len(sent))
		_ = c.Close(t.Context())
	})
}

func TestHundredGrantsWithLostRepliesCauseFewReads(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(lab.On(lab.Call.Grants, lab.Cut))
		for range 100 {
			lab.WantFailed(t, "acquire without a network", lab.ErrorOf(c.Acquire(w.Within(10*time.Millisecond), "job")))
			lab.Elapse(4 * time.Second) // let the unanswered requests end
		}
		wire.SetFault(nil)
		wire.Sent()
		lab.Elapse(time.Minute)
		lab.WantRange(t, "reads in a minute", lab.Count(wire.Sent(), lab.Call.Reads), 1, 5)
		_ = c.Close(t.Context())
	})
}

func TestKeyIsCheckedAgainSoonIfAcquireIsCancelledDuringCheck(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		w.Acquire(c, "other")
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case r.Grants():
				return lab.Drop(r)
			case r.Reads():
				return lab.Slow(2 * time.Second)(r)
			}
			return r.Send()
		})
		abandon := func() {
			lab.WantFailed(t, "acquire without a network", lab.ErrorOf(c.Acquire(w.Within(10*time.Millisecond), "job")))
		}
		abandon()
		lab.Elapse(6 * time.Second) // the first check is waiting for its reply
		abandon()
		lab.Elapse(2 * time.Second)
		lab.Want(t, "reads until the first check ended", lab.Count(wire.Sent(), lab.Call.Reads), 1)
		lab.Elapse(5 * time.Second)
		lab.Want(t, "reads in the next five seconds", lab.Count(wire.Sent(), lab.Call.Reads), 1)
		_ = c.Close(t.Context())
	})
}

func TestUnansweredGrantUnderSessionIsUndone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := leavesGrantUnanswered(w, lab.SharedConfig(), lab.Slow(time.Hour))
		lab.Elapse(5 * time.Second)
		plain, _ := w.Client(lab.Config())
		lock := lab.Must(plain.TryAcquire(t.Context(), "job"))(t)
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestUndoOfAbandonedGrantObeysConfigFieldDeleteOnRelease(t *testing.T) {
	lab.Each(t, map[string]bool{"released": false, "deleted": true}, func(t *testing.T, w *lab.World, deletes bool) {
		cfg := lab.SharedConfig()
		cfg.DeleteOnRelease = deletes
		if !deletes {
			cfg.Retention = time.Hour
		}
		var late func() (*http.Response, error)
		c, _ := leavesGrantUnanswered(w, cfg, func(r *lab.Request) (*http.Response, error) {
			late = r.Send
			return lab.Cut(r)
		})
		// The client tries at once to undo the grant, but the grant has not arrived yet.
		lab.Elapse(time.Minute)
		_, _ = late()
		if w.Item("job") == nil || w.IsReleased("job") {
			t.Fatal("bad setup: the grant was not applied")
		}
		lab.Elapse(2 * time.Minute)
		// The released record has no TTL: it may contain a done mark, which DynamoDB must not
		// delete.
		if gone := w.Item("job") == nil; gone != deletes || !gone && (!w.IsReleased("job") || w.Item("job")["expiresAt"] != nil) {
			t.Errorf("record %v", w.Item("job"))
		}
		_ = c.Close(t.Context())
	})
}

func TestCloseDeletesRecordsOfSessionOnlyIfDeleteOnReleaseIsSet(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		w.Acquire(c, "kept")
		w.Acquire(c, "deleted", leasehold.DeleteOnRelease(true))
		lab.OK(t, c.Close(t.Context()))
		lab.Want(t, "record of the lock to delete", w.Item("deleted"), nil)
		lab.Want(t, "other record is kept", w.Item("kept") != nil, true)
	})
}
