package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// runs is the number of calls of the method do.
type runs int

func (n *runs) do(context.Context, *leasehold.Lock) error { *n++; return nil }

var errFailed = errors.New("failed")

// works calls Do with a function, and fails the test unless Do calls that function exactly once.
func works(w *lab.World, c *leasehold.Client, opts ...leasehold.AcquireOption) {
	w.T.Helper()
	var n runs
	if err := c.Do(w.T.Context(), "job", n.do, opts...); err != nil || n != 1 {
		w.T.Fatalf("%v, ran %d times", err, n)
	}
}

func fails(context.Context, *leasehold.Lock) error { return errFailed }

// isDone fails the test unless err is a DoneError for the work with the given label.
func isDone(t *testing.T, err error, label string) *leasehold.DoneError {
	t.Helper()
	var done *leasehold.DoneError
	if !errors.As(err, &done) || !errors.Is(err, leasehold.ErrDone) || done.Done.Once != label {
		t.Fatalf("not done: %v", err)
	}
	return done
}

func TestFinishedWorkIsNotRepeatedWithOptionOnce(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, _ := w.Client(lab.Config())
		works(w, a, leasehold.Once("mon"))
		var n runs
		err := b.Do(t.Context(), "job", n.do, leasehold.Once("mon"))
		done := isDone(t, err, "mon")
		if !errors.Is(err, leasehold.ErrNotRun) || n != 0 || done.Done.Token == 0 || !strings.HasPrefix(done.Done.Owner, "test/") || done.Done.At.IsZero() {
			t.Errorf("ran %d times: %+v, %v", n, done.Done, err)
		}
		works(w, b, leasehold.Once("tue"))
	})
}

func TestFailedWorkCanBeRepeatedDespiteOptionOnce(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		lab.WantErr(t, "do", c.Do(t.Context(), "job", fails, leasehold.Once("mon")), errFailed)
		func() {
			defer func() { _ = recover() }()
			_ = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { panic("fn") }, leasehold.Once("mon"))
		}()
		synctest.Wait()
		w.Release(w.Acquire(c, "job", leasehold.Once("mon")))
		// The work runs, because the failure, the panic and the plain release above have
		// stored no mark.
		works(w, c, leasehold.Once("mon"))
	})
}

func TestWaiterGetsErrDoneWhenHolderMarksSameWorkAsDone(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		a, _ := w.Client(cfg)
		b, wire := w.Client(cfg)
		lock := w.Acquire(a, "job", leasehold.Once("mon"))
		var ended []<-chan error
		for _, c := range []*leasehold.Client{a, a, b} {
			ended = append(ended, begin(func() error { return c.Do(t.Context(), "job", fails, leasehold.Once("mon")) }))
		}
		lab.Elapse(time.Minute)
		wire.Sent()
		w.Release(lock, leasehold.MarkDone())
		for _, ended := range ended {
			isDone(t, <-ended, "mon")
		}
		calls := wire.Sent()
		// The waiter of the other client needs up to two requests to leave the queue.
		lab.WantRange(t, "requests", lab.Count(calls, func(c lab.Call) bool { return !c.RenewsSession() }), 0, 2)
	})
}

func TestOptionOnceNeedsNoExtraRequest(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		for _, label := range []string{"mon", "tue"} {
			works(w, c, leasehold.Once(label))
			lab.Want(t, label+": requests", strings.Join(lab.Ops(wire.Sent()), " "), "UpdateItem UpdateItem")
		}
		isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("tue"))), "tue")
		lab.Want(t, "requests for a label marked done", strings.Join(lab.Ops(wire.Sent()), " "), "UpdateItem")
	})
}

func TestWorkRunsOncePerPeriodWithOptionEvery(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) { // the time in a bubble begins at midnight UTC
		c, _ := w.Client(lab.Config())
		works(w, c, leasehold.Every(24*time.Hour))
		lab.Elapse(24*time.Hour - time.Second)
		err := c.Do(t.Context(), "job", fails, leasehold.Every(24*time.Hour))
		if done := as[*leasehold.DoneError](err); done == nil || done.Done.Period != time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) || !strings.Contains(err.Error(), "the work of 2000-01-01 was done") {
			t.Fatalf("before the end of the day: %v", err)
		}
		lab.Elapse(time.Second)
		works(w, c, leasehold.Every(24*time.Hour))
	})
}

func TestClientWhoseClockIsBehindDoesNotRepeatPeriodicWork(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lab.Elapse(48 * time.Hour)
		c, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config(), lab.Wall(func() time.Time { return time.Now().Add(-30 * time.Hour) }))
		works(w, c, leasehold.Every(24*time.Hour))
		if err := b.Do(t.Context(), "job", fails, leasehold.Every(24*time.Hour)); !errors.Is(err, leasehold.ErrDone) || errors.Is(err, errFailed) {
			t.Error(err)
		}
	})
}

// A call with the option Every is for the work of the period in which the call began. If the call
// waits for the key until the next period, it must not do the work of that next period.
func TestPeriodicWorkBelongsToPeriodInWhichCallStarted(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, b *leasehold.Client, _ *lab.Wire) {
		lab.Elapse(24*time.Hour - time.Second)
		lock := holds(w, "job", leasehold.Every(24*time.Hour))
		var n runs
		ended := begin(func() error { return b.Do(t.Context(), "job", n.do, leasehold.Every(24*time.Hour)) })
		lab.Elapse(time.Minute)
		w.Release(lock, leasehold.MarkDone())
		lab.WantErr(t, "do", <-ended, leasehold.ErrDone)
		lab.Want(t, "times run", n, 0)
		works(w, b, leasehold.Every(24*time.Hour)) // this call begins on the next day, whose work is not done yet
	})
}

func TestCommitAndReleaseStoresDoneMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, l := w.Work().Holding(lab.Config(), leasehold.Once("mon"))
		wire.Sent()
		lab.OK(t, l.CommitAndRelease(t.Context(), lab.Writes(lab.Note("work", "mon"))))
		lab.Want(t, "requests", len(wire.Sent()), 1)
		isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("mon"))), "mon")
	})
}

func TestFailedCommitStoresNoDoneMark(t *testing.T) {
	writes := lab.Writes(lab.Note("work", "mon"))
	lab.Each(t, map[string]func(w *lab.World, c *leasehold.Client, l *leasehold.Lock) error{
		"cancelled": func(w *lab.World, _ *leasehold.Client, l *leasehold.Lock) error {
			return l.CommitAndRelease(w.T.Context(), lab.Writes(lab.NoteIf("work", "never")))
		},
		"not sent": func(w *lab.World, _ *leasehold.Client, l *leasehold.Lock) error {
			return l.CommitAndRelease(w.Ended(), writes)
		},
		"shared": func(w *lab.World, c *leasehold.Client, l *leasehold.Lock) error {
			other := share(w, c, l)
			defer w.Release(other)
			return l.CommitAndRelease(w.T.Context(), writes)
		},
	}, func(t *testing.T, w *lab.World, commit func(w *lab.World, c *leasehold.Client, l *leasehold.Lock) error) {
		c, _ := w.Work().Client(lab.Config())
		lab.WantFailed(t, "commit", commit(w, c, w.Acquire(c, "job", leasehold.Once("mon"))))
		synctest.Wait()
		if r := get(w, c, "job"); r.Done != nil || !r.Released || w.WorkItem("work") != nil {
			t.Errorf("%+v, %v", r, w.WorkItem("work"))
		}
	})
}

func TestDoneMarkIsNeverDeletedByTTL(t *testing.T) {
	lab.Each(t, map[string]time.Duration{"usual retention": 0, "retention of an hour": time.Hour}, func(t *testing.T, w *lab.World, retention time.Duration) {
		cfg := lab.Config()
		cfg.Retention = retention
		c, wire := w.Client(cfg)
		w.Release(w.Acquire(c, "other"))
		lab.Want(t, "released record has expiresAt", w.Item("other")["expiresAt"] != nil, true)
		works(w, c, leasehold.Once("mon"))
		for name, do := range map[string]func(){
			"the release with the mark": func() {},
			"a later release":           func() { works(w, c) },
			"a break":                   func() { breaks(w, c, w.Acquire(c, "job").Record()) },
			"a cancelled Acquire": func() {
				ctx, cancel := context.WithCancel(t.Context())
				wire.SetFault(lab.Once(func(lab.Call) bool { return true }, func(r *lab.Request) (*http.Response, error) {
					defer cancel()
					return lab.LoseReply(r)
				}))
				lab.WantFailed(t, "acquire", lab.ErrorOf(c.Acquire(ctx, "job")))
				lab.Elapse(time.Minute)
			},
		} {
			do()
			if r := get(w, c, "job"); !r.Released || !r.ExpiresAt.IsZero() || r.Done == nil || r.Done.Once != "mon" {
				t.Errorf("after %s: %+v", name, r)
			}
		}
	})
}

func TestRecordWithDoneMarkIsKeptDespiteDeleteOnRelease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.DeleteOnRelease = true
		c, _ := w.Client(cfg)
		works(w, c, leasehold.Once("mon"))
		isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("mon"))), "mon")
	})
}

func TestWorkCanBeRepeatedAfterForgetDoneDeletesDoneMark(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		works(w, c, leasehold.Once("mon"))
		marked := get(w, c, "job")
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "UpdateItem" }, lab.LoseReply))
		for range 2 { // the reply to the first call's write is lost, so the second call finds the mark gone
			lab.OK(t, c.ForgetDone(t.Context(), marked))
		}
		works(w, c, leasehold.Once("mon"))
		lab.WantErr(t, "an earlier mark", c.ForgetDone(t.Context(), marked), leasehold.ErrChanged)
		isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("mon"))), "mon")
		unmarked := marked
		unmarked.Done = nil
		lab.WantFailed(t, "a record without a mark", c.ForgetDone(t.Context(), unmarked))
		wire.SetFault(lab.Drop)
		lab.WantErr(t, "unanswered ForgetDone", c.ForgetDone(w.Within(time.Minute), marked), leasehold.ErrUnknownOutcome)
	})
}

// A client that has just handed the key over knows the record from the reply to the hand-over. The
// done mark in that record may have been forgotten since.
func TestForgottenWorkIsRepeatedByClientThatHandedKeyOver(t *testing.T) {
	lab.Each(t, map[string]func(*lined) *leasehold.Client{
		"forgotten by the same client": func(l *lined) *leasehold.Client { return l.holder },
		"forgotten by the next client": func(l *lined) *leasehold.Client { return l.heads[0] },
	}, func(t *testing.T, w *lab.World, by func(*lined) *leasehold.Client) {
		c, _ := w.Client(lab.Config())
		works(w, c, leasehold.Once("mon"))
		l := inOrder(t, w, 1, lab.Config())
		next := l.handOver(0)
		lab.OK(t, by(l).ForgetDone(t.Context(), get(w, by(l), "job")))
		done := begin(func() error {
			var n runs
			err := l.holder.Do(t.Context(), "job", n.do, leasehold.Once("mon"))
			lab.Want(t, "runs", n, 1)
			return err
		})
		lab.Elapse(time.Second)
		w.Release(next)
		lab.OK(t, <-done)
	})
}

func TestForgetDoneDeletesHandWrittenDoneMarkOfAnyPeriod(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		w.Release(w.Acquire(c, "job"))
		for _, period := range []string{"1795982400000", "1795982400000.5", "-1.5", "1e30", "-1e30"} {
			w.Update("job", map[string]types.AttributeValue{
				"lastDone": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"period": lab.Num(period)}},
			})
			marked := get(w, c, "job")
			lab.OK(t, c.ForgetDone(t.Context(), marked))
			lab.Want(t, "mark of the period "+period, get(w, c, "job").Done, nil)
		}
	})
}

func TestReentrantCallsInsideFailedWorkStoreNoDoneMark(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		var n runs
		outer := func(ctx context.Context, l *leasehold.Lock) error {
			lab.WantErr(t, "without a label", c.Do(ctx, "job", n.do, leasehold.Reentrant()), nil)
			lab.WantErr(t, "with the same label", c.Do(ctx, "job", n.do, leasehold.Reentrant(), leasehold.Once("mon")), nil)
			lab.WantFailed(t, "do with another label", c.Do(ctx, "job", n.do, leasehold.Reentrant(), leasehold.Once("tue")))
			g, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"), leasehold.Reentrant())
			if err != nil {
				t.Error(err)
			} else if err := g.Do(ctx, func(context.Context, *leasehold.Group) error { return nil }); err != nil {
				t.Error(err)
			} else if r, err := c.Get(ctx, "other"); err != nil || !r.Released {
				t.Errorf("%+v, %v", r, err)
			}
			one := lab.Must(c.Acquire(ctx, "job", leasehold.Reentrant(), leasehold.Once("mon")))(t)
			lab.WantFailed(t, "release of one handle of several", one.Release(ctx, leasehold.MarkDone()))
			last := lab.Must(c.Acquire(ctx, "job", leasehold.Reentrant()))(t)
			_ = l.Release(ctx)
			lab.WantErr(t, "the last handle", last.Do(t.Context(), n.do), nil)
			return errFailed
		}
		lab.WantErr(t, "do", c.Do(t.Context(), "job", outer, leasehold.Once("mon")), errFailed)
		lab.Want(t, "times run", n, 3)
		lab.Want(t, "mark", w.Item("job")["lastDone"], nil)
	})
}

func TestOptionOnceOrEveryIsRejectedIfInvalidOrUnsupported(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		acquire := func(opts ...leasehold.AcquireOption) error {
			return lab.ErrorOf(c.Acquire(t.Context(), "job", opts...))
		}
		for name, err := range map[string]error{
			"Once and Every":         acquire(leasehold.Once("mon"), leasehold.Every(time.Hour)),
			"empty label":            acquire(leasehold.Once("")),
			"long label":             acquire(leasehold.Once(strings.Repeat("x", 257))),
			"label not UTF-8":        acquire(leasehold.Once("\xff")),
			"short period":           acquire(leasehold.Every(time.Second - 1)),
			"period with a fraction": acquire(leasehold.Every(time.Second + 1)),
			"negative period":        acquire(leasehold.Every(-time.Hour)),
			"with DeleteOnRelease":   acquire(leasehold.Once("mon"), leasehold.DeleteOnRelease(true)),
			"AcquireAny":             lab.ErrorOf(c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.Once("mon"))),
			"AcquireAll":             lab.ErrorOf(c.AcquireAll(t.Context(), leasehold.Keys("a", "b"), leasehold.Once("mon"))),
		} {
			lab.WantFailed(t, name, err)
		}
		lab.Want(t, "requests", len(wire.Sent()), 0)
		l := w.Acquire(c, "job")
		lab.WantFailed(t, "a mark without Once", l.Release(t.Context(), leasehold.MarkDone()))
		lab.WantErr(t, "lock", l.Err(), nil)
		w.Release(l)
		l = w.Acquire(c, "job", leasehold.Once("mon"))
		lab.WantFailed(t, "release that deletes the mark", l.Release(t.Context(), leasehold.DeleteOnRelease(true)))
		lab.WantErr(t, "lock", l.Err(), nil)
		lab.WantFailed(t, "a mark on a deleted record", l.Release(t.Context(), leasehold.MarkDone(), leasehold.DeleteOnRelease(true)))
		lab.WantErr(t, "lock", l.Err(), nil)
	})
	lab.InLayout(t, layout.AWSLabs{}, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire := w.Client(cfg)
		_, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		var unsupported *leasehold.UnsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "a key of its own") || len(wire.Sent()) > 0 {
			t.Errorf("%v", err)
		}
		if err := c.ForgetDone(t.Context(), leasehold.Record{Key: leasehold.Key{Partition: "job"}, Done: &leasehold.Done{Once: "mon"}}); !errors.As(err, &unsupported) {
			t.Errorf("%v", err)
		}
	})
}

func TestDamagedDoneMarkStillCountsIfLabelOrPeriodIsReadable(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		for name, tc := range map[string]struct {
			mark map[string]types.AttributeValue
			opt  leasehold.AcquireOption
			done bool
		}{
			"empty":          {nil, leasehold.Once("mon"), false},
			"another type":   {map[string]types.AttributeValue{"once": lab.Num("1"), "period": lab.Str("1")}, leasehold.Once("mon"), false},
			"only the label": {map[string]types.AttributeValue{"once": lab.Str("mon")}, leasehold.Once("mon"), true},
			"both":           {map[string]types.AttributeValue{"once": lab.Str("mon"), "period": lab.Num("1e30")}, leasehold.Once("mon"), true},
			"damaged": {
				map[string]types.AttributeValue{"once": lab.Str("mon"), "at": lab.Str("x"), "fencingToken": lab.Num("-1")}, leasehold.Once("mon"), true,
			},
			"a period out of range": {map[string]types.AttributeValue{"period": lab.Num("1e30")}, leasehold.Every(time.Hour), true},
		} {
			works(w, c)
			w.Update("job", map[string]types.AttributeValue{"lastDone": &types.AttributeValueMemberM{Value: tc.mark}})
			lab.Want(t, name+": is done", errors.Is(c.Do(t.Context(), "job", fails, tc.opt), leasehold.ErrDone), tc.done)
		}
		w.Update("job", map[string]types.AttributeValue{"lastDone": lab.Str("mon")}) // a valid mark is a map; this mark is a string
		lab.WantErr(t, "do", c.Do(t.Context(), "job", fails, leasehold.Once("mon")), errFailed)
	})
}

func TestDoneEventIsEmittedIfWorkIsAlreadyDone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, events := logged(w, lab.Config())
		works(w, c, leasehold.Once("mon"))
		isDone(t, c.Do(t.Context(), "job", fails, leasehold.Once("mon")), "mon")
		if got := events.kinds(); len(got) != 3 || got[2] != leasehold.EventDone {
			t.Errorf("%v", got)
		}
		if e := events.of(leasehold.EventDone)[0]; e.Requests != 1 || !errors.Is(e.Err, leasehold.ErrDone) {
			t.Errorf("%+v", e)
		}
	})
}

// A client does not read the done mark when it hands the key to another of its own goroutines. With
// the option Once, that goroutine's work may be done already. So the goroutine must send a grant,
// and the reply shows the mark.
func TestKeyIsNotHandedToGoroutineThatWaitsWithOptionOnce(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		works(w, c, leasehold.Once("mon"))
		lock := w.Acquire(c, "job")
		ended := begin(func() error { return c.Do(t.Context(), "job", fails, leasehold.Once("mon")) })
		lab.Elapse(time.Minute)
		w.Release(lock)
		isDone(t, <-ended, "mon")
	})
}

func TestDoneMarkIsStoredEvenIfKeyIsHandedOver(t *testing.T) {
	lab.Each(t, map[string]bool{"another goroutine": false, "the head of the queue": true}, func(t *testing.T, w *lab.World, other bool) {
		c, _ := w.Client(lab.Config())
		next := c
		if other {
			next, _ = w.Client(lab.Config())
		}
		lock := w.Acquire(c, "job", leasehold.Once("mon"))
		got := w.Queue(next, "job")
		lab.Elapse(2 * time.Minute)
		renew(w, lock) // the reply to the renewal shows the queue to the holder
		w.Release(lock, leasehold.MarkDone())
		w.Release(<-got)
		isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("mon"))), "mon")
	})
}

func TestDoneMarkIsNotStoredIfLockIsBrokenDuringWork(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, _ := w.Client(lab.Config())
		err := a.Do(t.Context(), "job", func(_ context.Context, l *leasehold.Lock) error {
			breaks(w, b, l.Record())
			works(w, b)
			return nil
		}, leasehold.Once("mon"))
		lab.WantErr(t, "do", err, leasehold.ErrLost)
		works(w, b, leasehold.Once("mon"))
	})
}

// Three other clients repeatedly acquire the key, immediately after each release. The client that
// waits with the option Once must join the queue. Otherwise it would never be granted the key.
func TestWaiterWithOptionOnceIsNotStarvedByOtherProcesses(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for range 3 {
			c, _ := w.Client(lab.Config())
			others.Go(func() {
				for ctx.Err() == nil {
					_ = c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { time.Sleep(2 * time.Second); return nil })
				}
			})
		}
		lab.Elapse(time.Minute)
		c, _ := w.Client(lab.Config())
		began := time.Now()
		wait := w.Within(10 * time.Minute)
		var n runs
		err := c.Do(wait, "job", n.do, leasehold.Once("mon"))
		if waited := time.Since(began); err != nil || waited > 20*time.Second || n != 1 {
			t.Errorf("with Once: %v after %v, ran %d times", err, waited, n)
		}
		isDone(t, c.Do(wait, "job", n.do, leasehold.Once("mon")), "mon")
		stop()
		others.Wait()
	})
}

// The client that hands the key over does not know for which work the head of the queue waits. So
// the head itself must read the done mark after the hand-over.
func TestNextWaiterAcquiresKeyIfHeadOfQueueFindsItsWorkDone(t *testing.T) {
	lab.Each(t, map[string]bool{"head is handed the key": true, "head is still in the queue": false}, func(t *testing.T, w *lab.World, handed bool) {
		_, _, lock := w.Holding(lab.Config())
		head, _ := w.Client(lab.Config())
		ended := begin(func() error { return head.Do(t.Context(), "job", fails, leasehold.Once("mon")) })
		lab.Elapse(time.Second)
		behind, _ := w.Client(lab.Config())
		got := w.Queue(behind, "job")
		lab.Elapse(10 * time.Second)
		mark := map[string]types.AttributeValue{"once": lab.Str("mon"), "by": lab.Str(lock.Record().Owner)} // an older version of leasehold may write the mark in this form
		w.Update("job", map[string]types.AttributeValue{"lastDone": &types.AttributeValueMemberM{Value: mark}})
		renew(w, lock) // the reply to the renewal shows the queue to the holder
		if handed {
			w.Release(lock)
		}
		began := time.Now()
		isDone(t, <-ended, "mon")
		if !handed {
			w.Release(lock)
		}
		w.Release(<-got)
		lab.WantTook(t, "next holder waited", began, 0, 2500*time.Millisecond)
		(&lined{World: w}).wantWaiting(0)
	})
}

// The holder makes the key free, and the waiter sends a grant. Before this grant reaches DynamoDB,
// the holder acquires the key again, does the waiter's work, and marks the work as done. So
// DynamoDB rejects the waiter's grant, and the reply shows the mark.
func TestWaiterGetsErrDoneIfWorkIsMarkedDoneBeforeItsGrantArrives(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, holder *leasehold.Client, _ *lab.Wire) {
		// Without renewals the holder does not learn that a waiter is in the queue. So the first
		// Release makes the key free instead of handing it over.
		lock := w.Acquire(holder, "job", leasehold.WithoutRenewal())
		head, wire := w.Client(lab.Config())
		ended := begin(func() error { return head.Do(t.Context(), "job", fails, leasehold.Once("mon")) })
		lab.Elapse(10 * time.Second)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			works(w, holder, leasehold.Once("mon"))
			works(w, holder)
			return r.Send()
		}))
		w.Release(lock)
		isDone(t, <-ended, "mon")
		lab.Elapse(time.Second)
		w.WantReleased("job")
	})
}

func TestWorkIsNotMarkedDoneIfAnotherHandleSharesItsGrant(t *testing.T) {
	lab.Each(t, map[string]bool{"both handles held": false, "own handle released": true}, func(t *testing.T, w *lab.World, released bool) {
		c, _ := w.Client(lab.Config())
		var other *leasehold.Lock
		err := c.Do(t.Context(), "job", func(_ context.Context, l *leasehold.Lock) error {
			if other = share(w, c, l); released {
				w.Release(l)
			}
			return nil
		}, leasehold.Once("mon"))
		lab.WantFailed(t, "do", err)
		w.Release(other)
		works(w, c, leasehold.Once("mon"))
	})
}

func TestLargestAllowedDataLeavesRoomForDoneMark(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		for size := 400 * 1024; ; size -= 8 {
			l, err := c.Acquire(t.Context(), "job", leasehold.WithData(make([]byte, size)))
			if err == nil {
				w.Release(l)
				break
			}
		}
		label := strings.Repeat("x", 256)
		works(w, c, leasehold.Once(label))
		isDone(t, c.Do(t.Context(), "job", fails, leasehold.Once(label)), label)
	})
}
