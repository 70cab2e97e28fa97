package behaviour_test

import (
	"context"
	"errors"
	"fmt"
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

// runs counts how often the work was done.
type runs int

func (n *runs) do(context.Context, *leasehold.Lock) error { *n++; return nil }

var errFailed = errors.New("failed")

func fails(context.Context, *leasehold.Lock) error { return errFailed }

// isDone fails the test unless err is a DoneError of label.
func isDone(t *testing.T, err error, label string) *leasehold.DoneError {
	t.Helper()
	var done *leasehold.DoneError
	if !errors.As(err, &done) || !errors.Is(err, leasehold.ErrDone) || done.Done.Once != label {
		t.Fatalf("not done: %v", err)
	}
	return done
}

func TestOnceDoesNotRepeatFinishedWork(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		var n runs
		if err := a.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil {
			t.Fatal(err)
		}
		wire.Sent()
		err := b.Do(t.Context(), "job", n.do, leasehold.Once("mon"))
		done := isDone(t, err, "mon")
		if !errors.Is(err, leasehold.ErrNotRun) || done.Done.Token == 0 || !strings.HasPrefix(done.Done.Owner, "test/") || done.Done.At.IsZero() {
			t.Errorf("%+v, %v", done.Done, err)
		}
		if err := b.Do(t.Context(), "job", n.do, leasehold.Once("tue")); err != nil || n != 2 {
			t.Errorf("the next label: %v, ran %d times", err, n)
		}
	})
}

func TestOnceFailedWorkIsRepeatedByNextCall(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var n runs
		if err := c.Do(t.Context(), "job", fails, leasehold.Once("mon")); !errors.Is(err, errFailed) {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = c.Do(t.Context(), "job", func(context.Context, *leasehold.Lock) error { panic("fn") }, leasehold.Once("mon"))
		}()
		synctest.Wait()
		l, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil || n != 1 {
			t.Errorf("after a failure, a panic and a plain release: %v, ran %d times", err, n)
		}
	})
}

func TestOnceWaiterReturnsErrDoneWhenWorkIsDone(t *testing.T) {
	for name, cfg := range map[string]leasehold.Config{"own leases": lab.Config(), "shared": lab.SharedConfig()} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, _ := w.Client(cfg)
				b, wire := w.Client(cfg)
				lock, err := a.Acquire(t.Context(), "job", leasehold.Once("mon"))
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 3)
				var n runs
				for _, c := range []*leasehold.Client{a, a, b} {
					go func() { ended <- c.Do(t.Context(), "job", n.do, leasehold.Once("mon")) }()
				}
				lab.Elapse(time.Minute)
				wire.Sent()
				if err := lock.Release(t.Context(), leasehold.MarkDone()); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					isDone(t, <-ended, "mon")
				}
				if n != 0 {
					t.Errorf("ran %d times", n)
				}
				calls := wire.Sent()
				if lab.Count(calls, func(c lab.Call) bool { return !c.RenewsSession() }) > 2 { // up to two requests are allowed, which the waiter needs to leave the queue
					t.Errorf("who waited elsewhere has sent %v since", lab.Ops(calls))
				}
			})
		})
	}
}

func TestOnceNeedsNoExtraRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var n runs
		for _, label := range []string{"mon", "tue"} {
			wire.Sent()
			if err := c.Do(t.Context(), "job", n.do, leasehold.Once(label)); err != nil {
				t.Fatal(err)
			}
			if ops := strings.Join(lab.Ops(wire.Sent()), " "); ops != "UpdateItem UpdateItem" {
				t.Errorf("%s: %s", label, ops)
			}
		}
		if _, err := c.Acquire(t.Context(), "job", leasehold.Once("tue")); !errors.Is(err, leasehold.ErrDone) {
			t.Fatal(err)
		}
		if ops := strings.Join(lab.Ops(wire.Sent()), " "); ops != "UpdateItem" {
			t.Errorf("done already: %s", ops)
		}
	})
}

func TestEveryRunsWorkOncePerPeriod(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) { // a bubble begins at midnight UTC
		c, _ := w.Client(lab.Config())
		var n runs
		do := func() error { return c.Do(t.Context(), "job", n.do, leasehold.Every(24*time.Hour)) }
		if err := do(); err != nil {
			t.Fatal(err)
		}
		lab.Elapse(24*time.Hour - time.Second)
		var done *leasehold.DoneError
		if err := do(); !errors.As(err, &done) || done.Done.Period != time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) {
			t.Fatalf("before the day is over: %v", err)
		}
		lab.Elapse(time.Second)
		if err := do(); err != nil || n != 2 {
			t.Errorf("the next day: %v, ran %d times", err, n)
		}
	})
}

func TestEveryDoesNotRepeatWorkIfClockIsBehind(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lab.Elapse(48 * time.Hour)
		c, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config(), lab.Wall(func() time.Time { return time.Now().Add(-30 * time.Hour) }))
		var n runs
		if err := c.Do(t.Context(), "job", n.do, leasehold.Every(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := b.Do(t.Context(), "job", n.do, leasehold.Every(24*time.Hour)); !errors.Is(err, leasehold.ErrDone) || n != 1 {
			t.Errorf("%v, ran %d times", err, n)
		}
	})
}

// The period is the one in which the call began. If the call waits beyond the end of that
// period, it does not do the work of the next period instead.
func TestEveryUsesPeriodInWhichCallBegan(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lab.Elapse(24*time.Hour - time.Second)
		lock, err := a.Acquire(t.Context(), "job", leasehold.Every(24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		var n runs
		ended := make(chan error, 1)
		go func() { ended <- b.Do(t.Context(), "job", n.do, leasehold.Every(24*time.Hour)) }()
		lab.Elapse(time.Minute)
		if err := lock.Release(t.Context(), leasehold.MarkDone()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, leasehold.ErrDone) || n != 0 {
			t.Errorf("%v, ran %d times", err, n)
		}
		if err := b.Do(t.Context(), "job", n.do, leasehold.Every(24*time.Hour)); err != nil || n != 1 {
			t.Errorf("the new day: %v, ran %d times", err, n)
		}
	})
}

func TestCommitAndReleaseMarksWorkInSameTransaction(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		c, wire := w.Client(lab.Config())
		l, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		if err != nil {
			t.Fatal(err)
		}
		wire.Sent()
		if err := l.CommitAndRelease(t.Context(), lab.Writes(lab.Note("work", "mon"))); err != nil {
			t.Fatal(err)
		}
		if ops := lab.Ops(wire.Sent()); len(ops) != 1 {
			t.Errorf("sent %v", ops)
		}
		_, err = c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		isDone(t, err, "mon")
	})
}

func TestFailedCommitStoresNoMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		w.Work()
		c, _ := w.Client(lab.Config())
		for name, commit := range map[string]func(l *leasehold.Lock) error{
			"cancelled": func(l *leasehold.Lock) error {
				return l.CommitAndRelease(t.Context(), lab.Writes(lab.NoteIf("work", "never")))
			},
			"not sent": func(l *leasehold.Lock) error {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				return l.CommitAndRelease(ctx, lab.Writes(lab.Note("work", "mon")))
			},
			"shared": func(l *leasehold.Lock) error {
				other, err := c.Acquire(l.Context(), "job", leasehold.Reentrant())
				if err != nil {
					t.Fatal(err)
				}
				err = l.CommitAndRelease(t.Context(), lab.Writes(lab.Note("work", "mon")))
				_ = other.Release(t.Context())
				return err
			},
		} {
			l, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
			if err != nil {
				t.Fatalf("before %s: %v", name, err)
			}
			if err := commit(l); err == nil {
				t.Errorf("%s: committed", name)
			}
			synctest.Wait()
			if r, err := c.Get(t.Context(), "job"); err != nil || r.Done != nil || !r.Released {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		w.WantLog()
	})
}

func TestMarkIsNeverDeletedByTTL(t *testing.T) {
	for _, retention := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint("retention ", retention), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Retention = retention
				c, wire := w.Client(cfg)
				w.Release(w.Acquire(c, "other"))
				if w.Item("other")["expiresAt"] == nil {
					t.Error("no retention")
				}
				var n runs
				for name, do := range map[string]func() error{
					"the release that marks": func() error { return c.Do(t.Context(), "job", n.do, leasehold.Once("mon")) },
					"a release after it":     func() error { return c.Do(t.Context(), "job", n.do) },
					"a break":                func() error { return c.Break(t.Context(), w.Acquire(c, "job").Record(), leasehold.BreakOptions{}) },
					"a grant that nobody wants any more": func() error {
						ctx, cancel := context.WithCancel(t.Context())
						wire.SetFault(lab.Once(func(lab.Call) bool { return true }, func(r *lab.Request) (*http.Response, error) {
							defer cancel()
							return lab.LoseReply(r)
						}))
						if _, err := c.Acquire(ctx, "job"); err == nil {
							t.Error("granted")
						}
						lab.Elapse(time.Minute)
						return nil
					},
				} {
					_ = c.Do(t.Context(), "job", n.do, leasehold.Once("mon"))
					if err := do(); err != nil && !errors.Is(err, leasehold.ErrDone) {
						t.Fatal(err)
					}
					r, err := c.Get(t.Context(), "job")
					if err != nil || !r.Released || !r.ExpiresAt.IsZero() || r.Done == nil || r.Done.Once != "mon" {
						t.Errorf("after %s: %+v, %v", name, r, err)
					}
				}
			})
		})
	}
}

func TestDeleteOnReleaseKeepsRecordsWithMarks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		cfg.DeleteOnRelease = true
		c, _ := w.Client(cfg)
		var n runs
		if err := c.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil {
			t.Fatal(err)
		}
		_, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		isDone(t, err, "mon")
	})
}

func TestForgottenMarkAllowsWorkAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var n runs
		do := func() error { return c.Do(t.Context(), "job", n.do, leasehold.Once("mon")) }
		if err := do(); err != nil {
			t.Fatal(err)
		}
		marked, err := c.Get(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		wire.SetFault(lab.Once(func(c lab.Call) bool { return c.Op == "UpdateItem" }, lab.LoseReply))
		if err := c.ForgetDone(t.Context(), marked); err != nil {
			t.Fatalf("with a reply lost: %v", err)
		}
		if err := c.ForgetDone(t.Context(), marked); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := do(); err != nil || n != 2 {
			t.Errorf("%v, ran %d times", err, n)
		}
		if err := c.ForgetDone(t.Context(), marked); !errors.Is(err, leasehold.ErrChanged) {
			t.Errorf("an earlier mark: %v", err)
		}
		_, err = c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		isDone(t, err, "mon")
		unmarked := marked
		unmarked.Done = nil
		if err := c.ForgetDone(t.Context(), unmarked); err == nil {
			t.Error("a record without a mark")
		}
		wire.SetFault(func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.ForgetDone(ctx, marked); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("without an answer: %v", err)
		}
	})
}

func TestHandleWithoutOnceStoresNoMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var n runs
		outer := func(ctx context.Context, l *leasehold.Lock) error {
			if err := c.Do(ctx, "job", n.do, leasehold.Reentrant()); err != nil {
				t.Errorf("without a label: %v", err)
			}
			if err := c.Do(ctx, "job", n.do, leasehold.Reentrant(), leasehold.Once("mon")); err != nil {
				t.Errorf("with the same label: %v", err)
			}
			if err := c.Do(ctx, "job", n.do, leasehold.Reentrant(), leasehold.Once("tue")); err == nil {
				t.Error("shared for another label")
			}
			g, err := c.AcquireAll(ctx, leasehold.Keys("job", "other"), leasehold.Reentrant())
			if err != nil {
				t.Error(err)
			} else if err := g.Do(ctx, func(context.Context, *leasehold.Group) error { return nil }); err != nil {
				t.Error(err)
			} else if r, err := c.Get(ctx, "other"); err != nil || !r.Released {
				t.Errorf("%+v, %v", r, err)
			}
			one, err := c.Acquire(ctx, "job", leasehold.Reentrant(), leasehold.Once("mon"))
			if err != nil {
				t.Fatal(err)
			}
			if err := one.Release(ctx, leasehold.MarkDone()); err == nil {
				t.Error("one of several handles says that the work is done, and nothing stores it")
			}
			last, err := c.Acquire(ctx, "job", leasehold.Reentrant())
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Release(ctx)
			if err := last.Do(t.Context(), n.do); err != nil {
				t.Errorf("the last handle: %v", err)
			}
			return errFailed
		}
		if err := c.Do(t.Context(), "job", outer, leasehold.Once("mon")); !errors.Is(err, errFailed) || n != 3 {
			t.Errorf("%v, ran %d times", err, n)
		}
		if item := w.Item("job"); item["lastDone"] != nil {
			t.Errorf("%v", item)
		}
	})
}

func TestOnceIsRejectedInLayoutsThatCannotStoreMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		acquire := func(opts ...leasehold.AcquireOption) error {
			_, err := c.Acquire(t.Context(), "job", opts...)
			return err
		}
		for name, err := range map[string]error{
			"both":     acquire(leasehold.Once("mon"), leasehold.Every(time.Hour)),
			"empty":    acquire(leasehold.Once("")),
			"long":     acquire(leasehold.Once(strings.Repeat("x", 257))),
			"no text":  acquire(leasehold.Once("\xff")),
			"short":    acquire(leasehold.Every(time.Second - 1)),
			"uneven":   acquire(leasehold.Every(time.Second + 1)),
			"negative": acquire(leasehold.Every(-time.Hour)),
			"deleted":  acquire(leasehold.Once("mon"), leasehold.DeleteOnRelease(true)),
			"several": func() error {
				_, err := c.AcquireAny(t.Context(), leasehold.Keys("a", "b"), leasehold.Once("mon"))
				return err
			}(),
			"all": func() error {
				_, err := c.AcquireAll(t.Context(), leasehold.Keys("a", "b"), leasehold.Once("mon"))
				return err
			}(),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if calls := wire.Sent(); len(calls) > 0 {
			t.Errorf("sent %v", lab.Ops(calls))
		}
		l, err := c.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context(), leasehold.MarkDone()); err == nil || l.Err() != nil {
			t.Errorf("a mark without Once: %v, %v", err, l.Err())
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err = c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context(), leasehold.DeleteOnRelease(true)); err == nil || l.Err() != nil {
			t.Errorf("what is done is deleted: %v", err)
		}
		if err := l.Release(t.Context(), leasehold.MarkDone(), leasehold.DeleteOnRelease(true)); err == nil || l.Err() != nil {
			t.Errorf("a mark on a deleted record: %v, %v", err, l.Err())
		}
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

func TestUnreadableMarkIsIgnored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var n runs
		for name, tc := range map[string]struct {
			mark types.AttributeValue
			done bool
		}{
			"no map":         {lab.Str("mon"), false},
			"empty":          {&types.AttributeValueMemberM{}, false},
			"another type":   {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"once": lab.Num("1"), "period": lab.Str("1")}}, false},
			"nothing but it": {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"once": lab.Str("mon")}}, true},
			"both":           {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"once": lab.Str("mon"), "period": lab.Num("1e30")}}, true},
			"damaged":        {&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"once": lab.Str("mon"), "at": lab.Str("x"), "fencingToken": lab.Num("-1")}}, true},
		} {
			if err := c.Do(t.Context(), "job", n.do); err != nil {
				t.Fatal(err)
			}
			w.Update("job", map[string]types.AttributeValue{"lastDone": tc.mark})
			err := c.Do(t.Context(), "job", fails, leasehold.Once("mon"))
			if errors.Is(err, leasehold.ErrDone) != tc.done {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.Update("job", map[string]types.AttributeValue{"lastDone": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"period": lab.Num("1e30")}}})
		if err := c.Do(t.Context(), "job", n.do, leasehold.Every(time.Hour)); !errors.Is(err, leasehold.ErrDone) {
			t.Errorf("a period out of range: %v", err)
		}
	})
}

func TestCallForFinishedWorkEmitsEventDone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := lab.Config()
		var kinds []leasehold.EventKind
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if kinds = append(kinds, e.Kind); e.Kind == leasehold.EventDone && (e.Requests != 1 || !errors.Is(e.Err, leasehold.ErrDone)) {
				t.Errorf("%+v", e)
			}
		}
		c, _ := w.Client(cfg)
		var n runs
		for range 2 {
			_ = c.Do(t.Context(), "job", n.do, leasehold.Once("mon"))
		}
		if got := len(kinds); got != 3 || kinds[2] != leasehold.EventDone {
			t.Errorf("%v", kinds)
		}
	})
}

// A client hands the key to its next goroutine without a check of the mark. So it does not
// hand the key to a goroutine whose work may be done.
func TestKeyIsNotHandedToGoroutineWhoseWorkIsDone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var n runs
		if err := c.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil {
			t.Fatal(err)
		}
		lock, err := c.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Do(t.Context(), "job", n.do, leasehold.Once("mon")) }()
		lab.Elapse(time.Minute)
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		isDone(t, <-ended, "mon")
	})
}

func TestMarkIsStoredEvenIfKeyHasNextHolder(t *testing.T) {
	for name, other := range map[string]bool{"another goroutine": false, "the head of the queue": true} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, _ := w.Client(lab.Config())
				next := c
				if other {
					next, _ = w.Client(lab.Config())
				}
				lock, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
				if err != nil {
					t.Fatal(err)
				}
				var n runs
				ended := make(chan error, 1)
				go func() { ended <- next.Do(t.Context(), "job", n.do) }()
				lab.Elapse(2 * time.Minute)
				if err := lock.Renew(t.Context()); err != nil { // the reply to the renewal shows the queue to the holder
					t.Fatal(err)
				}
				if err := lock.Release(t.Context(), leasehold.MarkDone()); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil || n != 1 {
					t.Errorf("next: %v, ran %d times", err, n)
				}
				_, err = c.Acquire(t.Context(), "job", leasehold.Once("mon"))
				isDone(t, err, "mon")
			})
		})
	}
}

func TestLostLockStoresNoMarkForFinishedWork(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		var n runs
		err := a.Do(t.Context(), "job", func(ctx context.Context, l *leasehold.Lock) error {
			if err := b.Break(ctx, l.Record(), leasehold.BreakOptions{}); err != nil {
				return err
			}
			return b.Do(t.Context(), "job", n.do)
		}, leasehold.Once("mon"))
		if !errors.Is(err, leasehold.ErrLost) {
			t.Fatal(err)
		}
		if err := b.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil || n != 2 {
			t.Errorf("%v, ran %d times", err, n)
		}
	})
}

// Each of three other processes has a worker that acquires the key again at once. If a
// waiter had no entry in the queue, it would never be granted the key.
func TestOnceWaiterJoinsQueue(t *testing.T) {
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
		var n runs
		began := time.Now()
		wait, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := c.Do(wait, "job", n.do, leasehold.Once("mon")); err != nil {
			t.Errorf("with Once: %v", err)
		}
		if waited := time.Since(began); waited > 20*time.Second || n != 1 {
			t.Errorf("with Once: after %v, ran %d times", waited, n)
		}
		isDone(t, c.Do(wait, "job", n.do, leasehold.Once("mon")), "mon")
		stop()
		others.Wait()
	})
}

// The write that hands the key to the head of the queue does not read the mark.
func TestQueueHeadWhoseWorkIsDonePassesKeyToNextWaiter(t *testing.T) {
	for name, handed := range map[string]bool{"it is handed the key": true, "it still stands in the queue": false} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				holder, _ := w.Client(lab.Config())
				lock := w.Acquire(holder, "job")
				var n runs
				ended := make(chan error, 1)
				head, _ := w.Client(lab.Config())
				go func() { ended <- head.Do(t.Context(), "job", n.do, leasehold.Once("mon")) }()
				lab.Elapse(time.Second)
				behind, _ := w.Client(lab.Config())
				got := w.Queue(behind, "job")
				lab.Elapse(10 * time.Second)
				w.Update("job", map[string]types.AttributeValue{ // a client of an older version might write this mark
					"lastDone": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
						"once": &types.AttributeValueMemberS{Value: "mon"},
						"by":   &types.AttributeValueMemberS{Value: lock.Record().Owner},
					}},
				})
				if err := lock.Renew(t.Context()); err != nil { // the reply to the renewal shows the queue to the holder
					t.Fatal(err)
				}
				if handed {
					w.Release(lock)
				}
				began := time.Now()
				isDone(t, <-ended, "mon")
				if !handed {
					w.Release(lock)
				}
				w.Release(<-got)
				if waited := time.Since(began); waited > 2500*time.Millisecond || n != 0 {
					t.Errorf("the next was granted the key after %v; what is done ran %d times", waited, n)
				}
				if waiters := w.Item("job")["waiters"]; waiters != nil && len(waiters.(*types.AttributeValueMemberL).Value) > 0 {
					t.Errorf("in the queue: %v", waiters)
				}
			})
		})
	}
}

// The key is handed over while a grant of the head is in flight. The reply to that grant
// shows the hand-over.
func TestWaiterReturnsErrDoneIfHandedKeyWhoseWorkIsDone(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		lock := w.Acquire(holder, "job", leasehold.WithoutRenewal()) // without renewals the holder does not see the waiter, so its release frees the key
		var n runs
		ended := make(chan error, 1)
		head, wire := w.Client(lab.Config())
		go func() { ended <- head.Do(t.Context(), "job", n.do, leasehold.Once("mon")) }()
		lab.Elapse(10 * time.Second)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			next := w.Acquire(holder, "job", leasehold.Once("mon"))
			if err := next.Release(context.Background(), leasehold.MarkDone()); err != nil {
				t.Error(err)
			}
			w.Release(w.Acquire(holder, "job"))
			return r.Send()
		}))
		w.Release(lock)
		isDone(t, <-ended, "mon")
		if n != 0 {
			t.Errorf("ran %d times", n)
		}
		lab.Elapse(time.Second)
		if !w.IsReleased("job") {
			t.Error("the key is held")
		}
	})
}

func TestDoWithEarlierHandleReportsThatMarkIsNotStored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		var n runs
		for name, work := range map[string]func(ctx context.Context, l *leasehold.Lock) (*leasehold.Lock, error){
			"another works on": func(ctx context.Context, _ *leasehold.Lock) (*leasehold.Lock, error) {
				return c.Acquire(ctx, "job", leasehold.Reentrant())
			},
			"and it has released": func(ctx context.Context, l *leasehold.Lock) (*leasehold.Lock, error) {
				other, err := c.Acquire(ctx, "job", leasehold.Reentrant())
				return other, errors.Join(err, l.Release(ctx))
			},
		} {
			var other *leasehold.Lock
			err := c.Do(t.Context(), "job", func(ctx context.Context, l *leasehold.Lock) (err error) {
				other, err = work(ctx, l)
				return err
			}, leasehold.Once("mon"))
			if err == nil {
				t.Errorf("%s: Do says that it is done", name)
			}
			w.Release(other)
		}
		if err := c.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil || n != 1 {
			t.Errorf("the next: %v, ran %d times", err, n)
		}
	})
}

func TestLargestAllowedDataLeavesRoomForMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		for size := 400 * 1024; ; size -= 8 {
			l, err := c.Acquire(t.Context(), "job", leasehold.WithData(make([]byte, size)))
			if err == nil {
				w.Release(l)
				break
			}
		}
		var n runs
		label := strings.Repeat("x", 256)
		if err := c.Do(t.Context(), "job", n.do, leasehold.Once(label)); err != nil {
			t.Error(err)
		}
		isDone(t, c.Do(t.Context(), "job", n.do, leasehold.Once(label)), label)
	})
}
