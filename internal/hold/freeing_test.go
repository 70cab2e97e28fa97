package hold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestRefusedReleaseMayBeSentAgain(t *testing.T) {
	for by, release := range map[string]func(context.Context, held) error{
		"released":            func(ctx context.Context, h held) error { return h.Release(ctx) },
		"committed, released": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("1")) },
	} {
		for _, code := range []string{"AccessDeniedException", "ExpiredTokenException", "ValidationException"} {
			for what, acquire := range lockOrGroup {
				t.Run(what+" "+by+", "+code, func(t *testing.T) {
					lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
						c, wire := w.Work().Client(cfg)
						lock := acquire(w, c)
						wire.SetFault(refuseReleases(code))
						if err := release(t.Context(), lock); !errors.As(err, new(*leasehold.OpError)) {
							t.Errorf("refused: %v", err)
						}
						if err := lock.Release(t.Context()); !errors.As(err, new(*leasehold.OpError)) {
							t.Errorf("refused again: %v", err)
						}
						wire.SetFault(nil)
						if err := lock.Release(t.Context()); err != nil || !w.IsReleased("job") {
							t.Errorf("allowed: %v, record %v", err, w.Item("job"))
						}
						wire.Sent()
						if err := lock.Release(t.Context()); err != nil || len(wire.Sent()) != 0 {
							t.Errorf("once more: %v", err)
						}
						lab.WantErr(t, "close", c.Close(t.Context()), nil)
					})
				})
			}
		}
	}
}

func TestReleaseDoesNotWaitForAbandonedRelease(t *testing.T) {
	lab.Each(t, lockOrGroup, func(t *testing.T, w *lab.World, acquire func(*lab.World, *leasehold.Client) held) {
		cfg := lab.Config()
		cfg.ReleaseGrace = 500 * time.Millisecond
		c, wire := w.Client(cfg)
		lock := acquire(w, c)
		wire.SetFault(lab.Cut)
		lab.WantErr(t, "without a network", lock.Release(w.Ended()), leasehold.ErrUnknownOutcome)
		wire.SetFault(nil) // later requests are answered; the unanswered request stays unanswered
		began := time.Now()
		if err := lock.Release(w.Ended()); err != nil || time.Since(began) > 100*time.Millisecond || !w.IsReleased("job") {
			t.Errorf("again: %v after %v, record %v", err, time.Since(began), w.Item("job"))
		}
	})
}

func TestConcurrentReleasesOfLockSendOneRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.Config())
		wire.Sent()
		wire.SetFault(lab.Slow(time.Second))
		first := lab.Go(func() error { return lock.Release(t.Context()) })
		lab.Elapse(100 * time.Millisecond)
		lab.WantErr(t, "second", lock.Release(t.Context()), nil)
		lab.WantErr(t, "first", <-first, nil)
		if n := len(wire.Sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestKeyAfterFailedReleaseIsFreeForSameClient(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire, lock := w.Holding(cfg)
		wire.SetFault(refuseReleases("AccessDeniedException"))
		if err := lock.Release(t.Context()); err == nil {
			t.Error("released")
		}
		wire.SetFault(nil)
		next, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		lab.WantErr(t, "the first is released again", lock.Release(t.Context()), nil)
		lab.WantErr(t, "the next holder", next.Renew(t.Context()), nil)
		w.Release(next)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
	})
}

func TestUnansweredReleasesStayWithinLimitOfConditionOperands(t *testing.T) { // a condition names 100 versions at most
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		_, wire, lock := w.Holding(cfg, leasehold.WithoutRenewal())
		wire.SetFault(lab.On(isUpdate, lab.Drop))
		for range 150 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := lock.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Fatalf("release: %v", err)
			}
			cancel()
		}
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil || !w.IsReleased("job") {
			t.Errorf("in the end: %v, record %v", err, w.Item("job"))
		}
	})
}

func TestDoIgnoresErrorOfFailedRelease(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"denied": lab.Refused("AccessDeniedException"), "unavailable": lab.Out,
	}, func(t *testing.T, w *lab.World, fails lab.Fault) {
		cfg := lab.Config()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire := w.Client(cfg)
		wire.SetFault(lab.On(lab.Call.Releases, fails))
		for i, want := range []error{nil, errors.New("work")} {
			key := fmt.Sprint("job/", i)
			err := c.Do(t.Context(), key, func(context.Context, *leasehold.Lock) error { return want })
			if err != want { //nolint:errorlint // as it is: a caller repeats what it takes for failed
				t.Errorf("work returned %v, Do %v", want, err)
			}
			if !slices.ContainsFunc(released(), func(e leasehold.Event) bool { return e.Key.Partition == key && e.Err != nil }) {
				t.Error("nobody hears of the release that failed")
			}
		}
		wire.SetFault(nil)
		if err := c.Close(t.Context()); err != nil { // Close ends the repetitions in the background
			t.Error(err)
		}
	})
}

func TestEventOfBackgroundReleaseOmitsTimeHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire, lock := w.Holding(cfg)
		time.Sleep(2 * time.Second)
		wire.SetFault(refuseReleases("ThrottlingException"))
		if err := lock.Release(w.Ended()); err == nil {
			t.Fatal("not what this test is about: it was released")
		}
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		_ = c.Close(t.Context())
		if e := released(); len(e) != 2 || e[0].Err == nil || e[0].Held < 2*time.Second || e[1].Err != nil || e[1].Held != 0 {
			t.Errorf("reported: %+v", e)
		}
	})
}

func TestClientRepeatsFailedReleaseUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		other, _ := w.Client(lab.Config())
		wire.SetFault(refuseReleases("AccessDeniedException"))
		lab.WantErr(t, "do", c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }), nil)
		lab.Elapse(10 * time.Minute)
		if n := lab.Count(wire.Sent(), lab.Call.Releases); n < 2 || n > 7 {
			t.Errorf("%d releases sent in ten minutes", n)
		}
		wire.SetFault(nil)
		began := time.Now()
		lock := w.Acquire(other, "job")
		if took := time.Since(began); took > touchingSoon {
			t.Errorf("the session's other locks were renewed, and this key was held by nobody for %v", took)
		}
		w.Release(lock)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		w.WantSilence(wire, time.Hour)
	})
}

// touchingSoon is the longest pause between two attempts of a release under a session, whose
// records are touched every twenty minutes.
const touchingSoon = 20 * time.Minute

func TestFailedReleaseLogsHowKeyWillBeFreed(t *testing.T) {
	type row struct {
		code string
		cfg  leasehold.Config
		want string
	}
	lab.Each(t, map[string]row{
		"refused for good":          {"ValidationException", lab.Config(), "the lease frees the key"},
		"throttled":                 {"ThrottlingException", lab.Config(), "it is repeated until the lease has ended"},
		"throttled, a shared lease": {"ThrottlingException", lab.SharedConfig(), "it is repeated while the shared lease is renewed"},
	}, func(t *testing.T, w *lab.World, tc row) {
		log := new(bytes.Buffer)
		tc.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		c, wire, lock := w.Holding(tc.cfg)
		wire.SetFault(refuseReleases(tc.code))
		if err := lock.Release(w.Ended()); err == nil {
			t.Error("released")
		}
		if said := log.String(); strings.Count(said, "release failed: ") != 1 || !strings.Contains(said, "release failed: "+tc.want) {
			t.Errorf("said %s", said)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestReleaseFreesGrantMadeByUnansweredHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c, leasehold.WithData([]byte("precious")))
		wire.SetFault(lab.Once(lab.Call.HandsOver, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(lab.Drop)
			leave()
			return lab.LoseReply(r)
		}))
		lab.WantErr(t, "without an answer", lock.Release(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		lab.WantErr(t, "the next", <-left, context.Canceled)
		wire.SetFault(nil)
		if err := lock.Release(t.Context()); err != nil || !w.IsReleased("job") {
			t.Errorf("again: %v, record %v", err, w.Item("job"))
		}
		if item := w.Item("job"); item["data"] == nil || item["expiresAt"] != nil {
			t.Errorf("the record with the next one's data expires, or has no data: %v", item)
		}
	})
}

func TestReleaseWithoutTimeLimitEndsAfterSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.SharedConfig())
		wire.SetFault(lab.On(lab.Call.Releases, lab.Cut))
		began := time.Now()
		lab.WantErr(t, "without an answer", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		if took := time.Since(began); took < 20*time.Second || took > 25*time.Second {
			t.Errorf("it took %v", took)
		}
		wire.SetFault(nil)
		lab.Elapse(time.Minute)
		if !w.IsReleased("job") {
			t.Error("not repeated while the shared lease is renewed")
		}
	})
}

func TestTimeHeldExcludesDurationOfRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire := w.Client(cfg)
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		lab.Elapse(time.Second)
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Late(2*time.Second, lab.LoseReply)))
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		slow := 0
		for _, e := range released() {
			if e.Held >= 2*time.Second {
				t.Errorf("%v was held for %v, not for one second", e.Key, e.Held)
			}
			if e.Took >= 2*time.Second {
				slow++
			}
		}
		if n := len(released()); n != 2 || slow != 1 {
			t.Errorf("%d events, %d of a release that took two seconds", n, slow)
		}
	})
}
