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

func TestReleaseSucceedsAfterTwoRefusedReleases(t *testing.T) {
	for by, release := range map[string]func(context.Context, held) error{
		"released":               func(ctx context.Context, h held) error { return h.Release(ctx) },
		"committed and released": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("1")) },
	} {
		for _, code := range []string{"AccessDeniedException", "ExpiredTokenException", "ValidationException"} {
			for what, acquire := range lockOrGroup {
				t.Run(what+" "+by+", "+code, func(t *testing.T) {
					lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
						c, wire := w.Work().Client(cfg)
						lock := acquire(w, c)
						wire.SetFault(refuseReleases(code))
						lab.WantAs[*leasehold.OpError](t, "refused", release(t.Context(), lock))
						lab.WantAs[*leasehold.OpError](t, "release refused again", lock.Release(t.Context()))
						wire.SetFault(nil)
						lab.WantErr(t, "release", lock.Release(t.Context()), nil)
						w.WantReleased("job")
						wire.Sent()
						lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
						lab.Want(t, "requests", len(wire.Sent()), 0)
						lab.WantErr(t, "close", c.Close(t.Context()), nil)
					})
				})
			}
		}
	}
}

func TestSecondReleaseDoesNotWaitForUnansweredFirst(t *testing.T) {
	lab.Each(t, lockOrGroup, func(t *testing.T, w *lab.World, acquire func(*lab.World, *leasehold.Client) held) {
		cfg := lab.Config()
		cfg.ReleaseGrace = 500 * time.Millisecond
		c, wire := w.Client(cfg)
		lock := acquire(w, c)
		wire.SetFault(lab.Cut)
		lab.WantErr(t, "release without a network", lock.Release(w.Ended()), leasehold.ErrUnknownOutcome)
		wire.SetFault(nil) // later requests are answered, but the first request still gets no reply
		began := time.Now()
		if err := lock.Release(w.Ended()); err != nil || time.Since(began) > 100*time.Millisecond || !w.IsReleased("job") {
			t.Errorf("second release: %v after %v, record %v", err, time.Since(began), w.Item("job"))
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
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		lab.WantErr(t, "first release", <-first, nil)
		lab.Want(t, "requests", len(wire.Sent()), 1)
	})
}

func TestClientReacquiresKeyAfterFailedRelease(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire, lock := w.Holding(cfg)
		wire.SetFault(refuseReleases("AccessDeniedException"))
		lab.WantFailed(t, "refused release", lock.Release(t.Context()))
		wire.SetFault(nil)
		next := lab.Must(c.TryAcquire(t.Context(), "job"))(t)
		lab.WantErr(t, "second release of the first lock", lock.Release(t.Context()), nil)
		lab.WantErr(t, "renewal of the next lock", next.Renew(t.Context()), nil)
		w.Release(next)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
	})
}

// The condition of a release lists versions as operands of IN. DynamoDB allows at most 100 operands
// there.
func TestReleaseSucceedsAfter150UnansweredReleases(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		_, wire, lock := w.Holding(cfg, leasehold.WithoutRenewal())
		wire.SetFault(lab.On(isUpdate, lab.Drop))
		for range 150 {
			lab.WantErr(t, "release", lock.Release(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		}
		wire.SetFault(nil)
		lab.WantErr(t, "release", lock.Release(t.Context()), nil)
		w.WantReleased("job")
	})
}

func TestCloseRepeatsReleaseThatFailsDuringClose(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World, lock *leasehold.Lock) error{
		"Release": func(w *lab.World, lock *leasehold.Lock) error { return lock.Release(w.Ended()) },
		"Do": func(w *lab.World, lock *leasehold.Lock) error {
			return lock.Do(w.Ended(), func(context.Context, *leasehold.Lock) error { return nil })
		},
	}, func(t *testing.T, w *lab.World, release func(*lab.World, *leasehold.Lock) error) {
		c, wire, lock := w.Holding(lab.Config())
		wire.SetFault(lab.Throttled)
		released := lab.Go(func() error { return release(w, lock) })
		lab.Elapse(time.Second)
		closed := lab.Go(func() error { return c.Close(t.Context()) })
		lab.Elapse(2 * time.Second)
		<-released // the release has given up: ReleaseGrace has passed
		lab.Want(t, "results of Close before the throttling has ended", len(closed), 0)
		wire.SetFault(nil)
		lab.WantErr(t, "close", <-closed, nil)
		w.WantReleased("job")
	})
}

// A waiter of the client cannot leave the queue of another key, so Close waits for it.
func TestCloseRepeatsFailedReleaseWhileOtherCallsEnd(t *testing.T) {
	lab.Each(t, map[string]time.Duration{
		"throttled for 3 s": 3 * time.Second, "throttled for longer than Close may take": 9 * time.Second,
	}, func(t *testing.T, w *lab.World, throttled time.Duration) {
		holder, _ := w.Client(lab.Config())
		other := w.Acquire(holder, "other")
		c, wire, lock := w.Holding(lab.Config())
		waited := lab.Go(func() error { return lab.ErrorOf(c.Acquire(t.Context(), "other")) })
		wire.SetFault(lab.Throttled)
		released := lab.Go(func() error { return lock.Release(w.Ended()) }) // fails after 2 s
		time.AfterFunc(throttled, func() {
			wire.SetFault(lab.On(func(c lab.Call) bool { return slices.Contains(c.Keys(), "other") }, lab.Throttled))
		})
		err := c.Close(w.Within(5 * time.Second))
		if freed := w.IsReleased("job"); freed != (throttled < 5*time.Second) || freed != (err == nil) {
			t.Errorf("the key is free: %v, close: %v", freed, err)
		}
		lab.WantErr(t, "waiter", <-waited, leasehold.ErrClosed)
		lab.WantFailed(t, "release", <-released)
		lab.Elapse(10 * time.Second)
		w.Release(other)
	})
}

func TestCloseReportsReleaseByAnotherCallThatHasNoReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		wire.SetFault(lab.Cut)
		released := lab.Go(func() error {
			return lock.Do(w.Ended(), func(context.Context, *leasehold.Lock) error { return nil })
		})
		lab.WantErr(t, "close", c.Close(w.Ended()), leasehold.ErrUnknownOutcome)
		lab.WantErr(t, "do", <-released, nil)
	})
}

// The release fails while Close waits for a function. One write to the session then frees all keys.
func TestCloseDoesNotRepeatReleaseIfEndOfSessionFreedKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		other := w.Acquire(c, "other")
		worked := lab.Go(func() error {
			return other.Do(t.Context(), func(ctx context.Context, _ *leasehold.Lock) error {
				<-ctx.Done()
				time.Sleep(800 * time.Millisecond)
				return nil
			})
		})
		isJob := func(c lab.Call) bool { return c.Releases() && slices.Contains(c.Keys(), "job") }
		wire.SetFault(lab.On(isJob, lab.Throttled))
		released := lab.Go(func() error { return lock.Release(w.Ended()) }) // fails after 2 s
		lab.Elapse(1500 * time.Millisecond)
		began := time.Now()
		lab.OK(t, c.Close(t.Context()))
		lab.Want(t, "closed after", time.Since(began), 800*time.Millisecond)
		<-released
		<-worked
	})
}

func TestCloseRepeatsFailedReleaseEvenIfOtherFunctionHangs(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire, lock := w.Holding(cfg)
		end, other := make(chan struct{}), w.Acquire(c, "other")
		worked := lab.Go(func() error {
			return other.Do(t.Context(), func(context.Context, *leasehold.Lock) error { <-end; return nil })
		})
		wire.SetFault(lab.On(lab.Call.Releases, lab.Throttled))
		lab.WantFailed(t, "release", lock.Release(w.Ended()))
		wire.SetFault(nil)
		lab.WantFailed(t, "close", c.Close(w.Within(5*time.Second)))
		w.WantReleased("job")
		close(end)
		<-worked
	})
}

func TestCloseRepeatsFailedReleaseWhileFunctionInDoRuns(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire, lock := w.Holding(cfg)
		released, end := make(chan struct{}), make(chan struct{})
		worked := lab.Go(func() error {
			return lock.Do(t.Context(), func(context.Context, *leasehold.Lock) error {
				wire.SetFault(lab.On(lab.Call.Releases, lab.Throttled))
				lab.WantFailed(t, "release", lock.Release(w.Ended()))
				wire.SetFault(nil)
				close(released)
				<-end // the function goes on with work for which it needs no lock
				return nil
			})
		})
		<-released
		began := time.Now()
		lab.OK(t, c.Close(t.Context()))
		lab.Want(t, "closed after", time.Since(began), 0)
		other, _ := w.Client(cfg)
		w.Release(w.Acquire(other, "job", leasehold.NoWait()))
		close(end)
		<-worked
	})
}

func TestDoReturnsFunctionErrorDespiteFailedRelease(t *testing.T) {
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
			if err != want { //nolint:errorlint // no errors.Is here: Do returns the function's own error unwrapped
				t.Errorf("work returned %v, Do %v", want, err)
			}
			if !slices.ContainsFunc(released(), func(e leasehold.Event) bool { return e.Key.Partition == key && e.Err != nil }) {
				t.Error("no event reports the failed release")
			}
		}
		wire.SetFault(nil)
		// Close also frees the key whose release is repeated in the background.
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
	})
}

func TestHoldingTimeIsReportedOnlyOnceIfReleaseIsRepeated(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire, lock := w.Holding(cfg)
		time.Sleep(2 * time.Second)
		wire.SetFault(refuseReleases("ThrottlingException"))
		lab.WantFailed(t, "refused release", lock.Release(w.Ended()))
		wire.SetFault(nil)
		lab.Elapse(10 * time.Second)
		_ = c.Close(t.Context())
		if e := released(); len(e) != 2 || e[0].Err == nil || e[0].Held < 2*time.Second || e[1].Err != nil || e[1].Held != 0 {
			t.Errorf("released events: %+v", e)
		}
	})
}

func TestFailedReleaseIsRepeatedUnderSharedLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.SharedConfig())
		other, _ := w.Client(lab.Config())
		wire.SetFault(refuseReleases("AccessDeniedException"))
		lab.WantErr(t, "do", c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { return nil }), nil)
		lab.Elapse(10 * time.Minute)
		lab.WantRange(t, "releases in ten minutes", lab.Count(wire.Sent(), lab.Call.Releases), 2, 7)
		wire.SetFault(nil)
		began := time.Now()
		lock := w.Acquire(other, "job")
		lab.WantTook(t, "key granted after", began, 0, touchingSoon)
		w.Release(lock)
		lab.WantErr(t, "close", c.Close(t.Context()), nil)
		w.WantSilence(wire, time.Hour)
	})
}

// touchingSoon is the longest pause between attempts to release a lock under a session. It is
// also the time between renewals of such a lock's record.
const touchingSoon = 20 * time.Minute

func TestFailedReleaseLogsHowKeyWillBeFreed(t *testing.T) {
	type row struct {
		code string
		cfg  leasehold.Config
		want string
	}
	lab.Each(t, map[string]row{
		"refused for good":        {"ValidationException", lab.Config(), "the lease frees the key"},
		"throttled":               {"ThrottlingException", lab.Config(), "it is repeated until the lease has ended"},
		"throttled, shared lease": {"ThrottlingException", lab.SharedConfig(), "it is repeated while the shared lease is renewed"},
	}, func(t *testing.T, w *lab.World, tc row) {
		log := new(bytes.Buffer)
		tc.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		c, wire, lock := w.Holding(tc.cfg)
		wire.SetFault(refuseReleases(tc.code))
		lab.WantFailed(t, "refused release", lock.Release(w.Ended()))
		if said := log.String(); strings.Count(said, "release failed: ") != 1 || !strings.Contains(said, "release failed: "+tc.want) {
			t.Errorf("log: %s", said)
		}
		wire.SetFault(nil)
		_ = c.Close(t.Context())
	})
}

func TestSecondReleaseUndoesUnansweredHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c, leasehold.WithData([]byte("precious")))
		wire.SetFault(lab.Once(lab.Call.HandsOver, func(r *lab.Request) (*http.Response, error) {
			wire.SetFault(lab.Drop)
			leave()
			return lab.LoseReply(r)
		}))
		lab.WantErr(t, "release without a reply", lock.Release(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		lab.WantErr(t, "cancelled waiter", <-left, context.Canceled)
		wire.SetFault(nil)
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		w.WantReleased("job")
		wantData(w)
	})
}

func TestReleaseGivesUpAfterOneLeaseIfDynamoDBDoesNotReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.SharedConfig())
		wire.SetFault(lab.On(lab.Call.Releases, lab.Cut))
		began := time.Now()
		lab.WantErr(t, "release without a reply", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		lab.WantTook(t, "released after", began, 20*time.Second, 25*time.Second)
		wire.SetFault(nil)
		lab.Elapse(time.Minute)
		w.WantReleased("job")
	})
}

// The last write that is applied stores a lease of an hour in the record: a renewal, or a hand-over
// to a goroutine that leaves meanwhile.
func TestReleaseIsRepeatedUntilLongestStoredLeaseExpires(t *testing.T) {
	type row struct {
		renews bool
		reply  lab.Fault
	}
	lab.Each(t, map[string]row{
		"unanswered renewal": {true, lab.LoseReply}, "unanswered hand-over": {false, lab.LoseReply}, "hand-over": {false, lab.Slow(time.Second)},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, lock := w.Holding(lab.Config())
		leave, hour := func() {}, leasehold.WithLease(time.Hour)
		if !tc.renews {
			leave, _ = mayLeave(w, c, hour)
		}
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			leave()
			wire.SetFault(lab.Drop)
			return tc.reply(r)
		})
		if tc.renews {
			lab.WantErr(t, "renew", lock.Renew(w.Within(time.Second), hour), leasehold.ErrUnknownOutcome)
		}
		lab.WantErr(t, "release", lock.Release(w.Ended()), leasehold.ErrUnknownOutcome)
		lab.Elapse(time.Minute)
		wire.SetFault(nil)
		lab.Elapse(5 * time.Second)
		w.WantReleased("job")
	})
}

func TestHoldingTimeExcludesDurationOfRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		released := lab.Events(&cfg, leasehold.EventReleased)
		c, wire := w.Client(cfg)
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		lab.Elapse(time.Second)
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Late(2*time.Second, lab.LoseReply)))
		lab.OK(t, g.Release(t.Context()))
		slow := 0
		for _, e := range released() {
			if e.Held >= 2*time.Second {
				t.Errorf("%v was held for %v, not for one second", e.Key, e.Held)
			}
			if e.Took >= 2*time.Second {
				slow++
			}
		}
		lab.Want(t, "events", len(released()), 2)
		lab.Want(t, "slow releases", slow, 1)
	})
}

func TestErrOfEveryLockInGroupIsSetBeforeReleaseIsSent(t *testing.T) {
	lab.Each(t, map[string]func(context.Context, held) error{
		"Release":          func(ctx context.Context, h held) error { return h.Release(ctx) },
		"CommitAndRelease": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("1")) },
	}, func(t *testing.T, w *lab.World, release func(context.Context, held) error) {
		c, wire := w.Work().Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			for _, l := range g.Locks() {
				if r.Releases() && l.Err() == nil {
					t.Errorf("%v is trusted while it is released", l.Key())
				}
			}
			return r.Send()
		})
		lab.WantErr(t, "release", release(t.Context(), g), nil)
	})
}

func TestReleaseOfGroupFreesKeysDespiteLostLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b", "c"))
		w.Delete("b")
		lab.Want(t, "lost key", lostIn(g.Release(t.Context())).Key.Partition, "b")
		lab.Want(t, "held", w.HeldAmong(leasehold.Keys("a", "c")), nil)
	})
}

func TestReleaseOfGroupSucceedsDespiteLostReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		g := w.AcquireAll(a, leasehold.Keys("a", "b"))
		var others *leasehold.Group
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			others = w.AcquireAll(b, leasehold.Keys("a", "b"))
			return nil, lab.ErrReset
		}))
		lab.WantErr(t, "release", g.Release(t.Context()), nil)
		lab.WantErr(t, "release", others.Release(t.Context()), nil)
	})
}

func TestReleaseOfGroupHandsOverKeyToWaiter(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		next := w.Queue(c, "a")
		wire.Sent()
		lab.WantErr(t, "release", g.Release(t.Context()), nil)
		heir := <-next
		if sent := wire.Sent(); len(sent) != 2 || !slices.ContainsFunc(sent, lab.Call.HandsOver) {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		w.Release(heir)
	})
}
