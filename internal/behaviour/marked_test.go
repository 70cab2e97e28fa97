package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// A release with MarkDone that returns nil has stored the mark. In most of these tests, a
// release cannot store the mark.

func TestLateReleaseReportsThatMarkIsNotStored(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *leasehold.Client, *lab.Wire, *leasehold.Lock){
		"Close": func(t *testing.T, c *leasehold.Client, _ *lab.Wire, _ *leasehold.Lock) {
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a release without it": func(t *testing.T, _ *leasehold.Client, _ *lab.Wire, l *leasehold.Lock) {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"a release without it, whose reply was lost": func(t *testing.T, _ *leasehold.Client, wire *lab.Wire, l *leasehold.Lock) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			wire.SetFault(lab.LoseReply)
			if err := l.Release(ctx); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			wire.SetFault(nil)
		},
	} {
		for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
			t.Run(name+", "+kind, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Client(cfg)
					l := w.Acquire(c, "job", leasehold.Once("mon"))
					before(t, c, wire, l)
					for range 2 {
						wire.Sent()
						if err := l.Release(t.Context(), leasehold.MarkDone()); err == nil || errors.Is(err, leasehold.ErrLost) {
							t.Errorf("%v", err)
						}
					}
					if sent := wire.Sent(); len(sent) > 0 {
						t.Errorf("what is known is asked again: %v", sent)
					}
					if item := w.Item("job"); item["lastDone"] != nil {
						t.Errorf("%v", item)
					}
				})
			})
		}
	}
}

func TestMarkDoneOfEndedHandleReturnsError(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		l := w.Acquire(c, "job", leasehold.Once("mon"))
		other, err := c.Acquire(l.Context(), "job", leasehold.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context(), leasehold.MarkDone()); err == nil {
			t.Error("the work counts as done, and nothing says so")
		}
		w.Release(other)
	})
}

// Close waits for a Do until its release has stored the mark.
func TestCloseWaitsUntilMarkOfFinishedWorkIsStored(t *testing.T) {
	for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
		t.Run(kind, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				for range 20 {
					c, wire := w.Client(cfg)
					closed := make(chan error, 1)
					err := c.Do(t.Context(), "job", func(ctx context.Context, _ *leasehold.Lock) error {
						go func() { closed <- c.Close(t.Context()) }()
						<-ctx.Done()
						synctest.Wait()
						wire.SetFault(lab.Slow(time.Second))
						return nil
					}, leasehold.Once("mon"))
					if err != nil {
						t.Fatal(err)
					}
					if err := <-closed; err != nil {
						t.Error(err)
					}
					other, _ := w.Client(lab.Config())
					r, err := other.Get(t.Context(), "job")
					if err != nil || !r.Released || r.Done == nil || r.Done.Once != "mon" {
						t.Fatalf("%+v, %v", r, err)
					}
					if err := other.ForgetDone(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// Another client has since been granted the key, and has replaced or deleted what the record
// says about work. It is unknown whether this client's mark was stored before that.
func TestReleaseOutcomeIsUnknownIfMarkWasReplaced(t *testing.T) {
	for name, opts := range map[string][]leasehold.AcquireOption{
		"that marked":  {leasehold.Once("mon")},
		"that deleted": {leasehold.DeleteOnRelease(true)},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				a, wire := w.Client(lab.Config())
				b, _ := w.Client(lab.Config())
				l := w.Acquire(a, "job", leasehold.Once("mon"))
				wire.SetFault(lab.Cut)
				released := make(chan error, 1)
				go func() { released <- l.Release(t.Context(), leasehold.MarkDone()) }()
				var n runs
				if err := b.Do(t.Context(), "job", n.do, opts...); err != nil || n != 1 {
					t.Fatal(err, n)
				}
				wire.SetFault(nil)
				err := <-released
				if again := l.Release(t.Context(), leasehold.MarkDone()); !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(again, leasehold.ErrUnknownOutcome) {
					t.Errorf("%v; again: %v", err, again)
				}
			})
		})
	}
}

// Every write was answered, so it is known that this client has stored no mark. So no other
// client can have removed such a mark.
func TestReleaseWithMarkReportsLossIfAllWritesWereAnswered(t *testing.T) {
	for name, since := range map[string]func(*testing.T, *leasehold.Client){
		"nothing": func(*testing.T, *leasehold.Client) {},
		"marked it": func(t *testing.T, c *leasehold.Client) {
			var n runs
			if err := c.Do(t.Context(), "job", n.do, leasehold.Once("mon")); err != nil || n != 1 {
				t.Fatal(err, n)
			}
		},
		"deleted the record": func(t *testing.T, c *leasehold.Client) {
			var n runs
			if err := c.Do(t.Context(), "job", n.do, leasehold.DeleteOnRelease(true)); err != nil || n != 1 {
				t.Fatal(err, n)
			}
		},
	} {
		for kind, cfg := range map[string]leasehold.Config{"own lease": lab.Config(), "shared lease": lab.SharedConfig()} {
			t.Run(name+", "+kind, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					a, _ := w.Client(cfg)
					b, _ := w.Client(lab.Config())
					l := w.Acquire(a, "job", leasehold.Once("mon"))
					r, err := b.Get(t.Context(), "job")
					if err != nil {
						t.Fatal(err)
					}
					if err := b.Break(t.Context(), r, leasehold.BreakOptions{}); err != nil {
						t.Fatal(err)
					}
					since(t, b)
					for range 2 {
						if err := l.Release(t.Context(), leasehold.MarkDone()); !errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) {
							t.Errorf("%v", err)
						}
					}
				})
			})
		}
	}
}

func TestReleaseOfLostLockStoresNoMark(t *testing.T) {
	for name, work := range map[string]func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error{
		"MarkDone": func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error {
			l := w.Acquire(c, "job", leasehold.Once("mon"))
			outlast(l.Context())
			return l.Release(w.T.Context(), leasehold.MarkDone())
		},
		"Do": func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error {
			return c.Do(w.T.Context(), "job", func(ctx context.Context, _ *leasehold.Lock) error { outlast(ctx); return nil }, leasehold.Once("mon"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				err := work(w, c, func(ctx context.Context) {
					wire.SetFault(lab.Cut)
					<-ctx.Done()
					wire.SetFault(nil)
				})
				if !errors.Is(err, leasehold.ErrLost) {
					t.Fatal(err)
				}
				if item := w.Item("job"); lab.Text(item, "isReleased") != "1" || item["lastDone"] != nil {
					t.Errorf("%v", item)
				}
			})
		})
	}
}

// A repeated release stores the mark, too.
func TestRepeatedReleaseStoresMark(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		l := w.Acquire(c, "job", leasehold.Once("mon"))
		wire.SetFault(lab.Out)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ended, leasehold.MarkDone()); err == nil {
			t.Fatal("released without a table")
		}
		wire.SetFault(nil)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := c.Acquire(t.Context(), "job", leasehold.Once("mon"))
		isDone(t, err, "mon")
	})
}

func TestMarkDoneOfResumedLockReturnsError(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock, err := c.Resume(t.Context(), w.Detach(w.Acquire(c, "job", leasehold.Once("v1"))))
		if err != nil {
			t.Fatal(err)
		}
		err = lock.Release(t.Context(), leasehold.MarkDone())
		if err == nil || !strings.Contains(err.Error(), "a resumed lock has forgotten Once") || strings.Contains(err.Error(), "was not acquired") {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
		w.Release(w.Acquire(c, "job", leasehold.Once("v1"))) // the work may be done again, as the error says
	})
}

func TestReleaseFindsMarkStoredByUnansweredCommit(t *testing.T) {
	for name, since := range map[string]func(w *lab.World){
		"nothing since": func(*lab.World) {},
		"granted to another": func(w *lab.World) {
			other, _ := w.Client(lab.Config())
			w.Release(w.Acquire(other, "job"))
		},
		"deleted": func(w *lab.World) { w.Delete("job") },
	} {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, released before %t", name, found), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Work().Client(lab.Config())
					lock := w.Acquire(c, "job", leasehold.Once("mon"))
					wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
						_, _ = r.Send()
						wire.SetFault(lab.Cut)
						return lab.Cut(r)
					}))
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if err := lock.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Fatal(err)
					}
					since(w)
					wire.SetFault(nil)
					if found { // during this time the client repeats the release itself, and finds that the lock has ended
						lab.Elapse(5 * time.Second)
					}
					err := lock.Release(t.Context(), leasehold.MarkDone())
					if name == "deleted" {
						if !errors.Is(err, leasehold.ErrUnknownOutcome) {
							t.Errorf("the mark was stored, and is gone: %v", err)
						}
						return
					}
					if err != nil {
						t.Errorf("the mark is stored: %v", err)
					}
					_, err = c.Acquire(t.Context(), "job", leasehold.Once("mon"))
					isDone(t, err, "mon")
				})
			})
		}
	}
}
