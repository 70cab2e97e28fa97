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

// A caller of Release with MarkDone may rely on the mark if Release returns nil. In most of the
// tests below, Release cannot store the mark and must return an error.

func TestOptionMarkDoneIsRejectedAfterReleaseOrClose(t *testing.T) {
	for name, before := range map[string]func(*lab.World, *leasehold.Client, *lab.Wire, *leasehold.Lock){
		"Close":                    func(w *lab.World, c *leasehold.Client, _ *lab.Wire, _ *leasehold.Lock) { closes(w, c) },
		"Release without MarkDone": func(w *lab.World, _ *leasehold.Client, _ *lab.Wire, l *leasehold.Lock) { w.Release(l) },
		"unanswered Release without MarkDone": func(w *lab.World, _ *leasehold.Client, wire *lab.Wire, l *leasehold.Lock) {
			wire.SetFault(lab.LoseReply)
			lab.WantErr(w.T, "release", l.Release(w.Ended()), leasehold.ErrUnknownOutcome)
			wire.SetFault(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				c, wire, l := w.Holding(cfg, leasehold.Once("mon"))
				before(w, c, wire, l)
				for range 2 {
					wire.Sent()
					if err := l.Release(t.Context(), leasehold.MarkDone()); err == nil || errors.Is(err, leasehold.ErrLost) {
						t.Errorf("%v", err)
					}
				}
				wantSent(t, wire, 0)
				lab.Want(t, "mark", w.Item("job")["lastDone"], nil)
			})
		})
	}
}

func TestOptionMarkDoneIsRejectedOnReleasedHandleOfSharedGrant(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		l := w.Acquire(c, "job", leasehold.Once("mon"))
		other := share(w, c, l)
		w.Release(l)
		lab.WantFailed(t, "release with a mark", l.Release(t.Context(), leasehold.MarkDone()))
		w.Release(other)
	})
}

// At the end of Do, a release stores the mark. Close waits for that release.
func TestCloseWaitsUntilDoneMarkIsStored(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
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
			lab.OK(t, err)
			lab.WantErr(t, "Close", <-closed, nil)
			other, _ := w.Client(lab.Config())
			r := get(w, other, "job")
			if !r.Released || r.Done == nil || r.Done.Once != "mon" {
				t.Fatalf("%+v", r)
			}
			lab.OK(t, other.ForgetDone(t.Context(), r))
		}
	})
}

// The first client's release with a mark gets no reply. Then a second client acquires the key, and
// either stores another mark or deletes the record. So the first client cannot find out whether its
// own mark was ever stored.
func TestReleaseOutcomeIsUnknownIfDoneMarkIsReplacedOrDeleted(t *testing.T) {
	lab.Each(t, map[string]leasehold.AcquireOption{
		"with another mark": leasehold.Once("mon"), "with deletion": leasehold.DeleteOnRelease(true),
	}, func(t *testing.T, w *lab.World, since leasehold.AcquireOption) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		l := w.Acquire(a, "job", leasehold.Once("mon"))
		wire.SetFault(lab.Cut)
		released := begin(func() error { return l.Release(t.Context(), leasehold.MarkDone()) })
		works(w, b, since)
		wire.SetFault(nil)
		for _, err := range []error{<-released, l.Release(t.Context(), leasehold.MarkDone())} {
			lab.WantErr(t, "Release", err, leasehold.ErrUnknownOutcome)
		}
	})
}

// All writes of the first client were answered before the break, so this client knows that it has
// stored no mark. Its release must return ErrLost and not ErrUnknownOutcome, even if a second
// client has stored a mark or deleted the record since.
func TestReleaseWithOptionMarkDoneReturnsErrLostAfterBreak(t *testing.T) {
	for name, since := range map[string][]leasehold.AcquireOption{
		"no later grant": nil, "a later mark": {leasehold.Once("mon")}, "a later deletion": {leasehold.DeleteOnRelease(true)},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				a, _ := w.Client(cfg)
				b, _ := w.Client(lab.Config())
				l := w.Acquire(a, "job", leasehold.Once("mon"))
				breaks(w, b, get(w, b, "job"))
				if since != nil {
					works(w, b, since...)
				}
				for range 2 {
					if err := l.Release(t.Context(), leasehold.MarkDone()); !errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrUnknownOutcome) {
						t.Errorf("%v", err)
					}
				}
			})
		})
	}
}

func TestReleaseOfExpiredLockStoresNoDoneMark(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error{
		"MarkDone": func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error {
			l := w.Acquire(c, "job", leasehold.Once("mon"))
			outlast(l.Context())
			return l.Release(w.T.Context(), leasehold.MarkDone())
		},
		"Do": func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error {
			return c.Do(w.T.Context(), "job", func(ctx context.Context, _ *leasehold.Lock) error { outlast(ctx); return nil }, leasehold.Once("mon"))
		},
	}, func(t *testing.T, w *lab.World, work func(w *lab.World, c *leasehold.Client, outlast func(context.Context)) error) {
		c, wire := w.Client(lab.Config())
		err := work(w, c, func(ctx context.Context) {
			wire.SetFault(lab.Cut)
			<-ctx.Done()
			wire.SetFault(nil)
		})
		lab.WantErr(t, "work under a lost lock", err, leasehold.ErrLost)
		if item := w.Item("job"); lab.Text(item, "isReleased") != "1" || item["lastDone"] != nil {
			t.Errorf("%v", item)
		}
	})
}

// If Release with MarkDone fails, a second Release stores the mark even without MarkDone.
func TestSecondReleaseOfLockStoresDoneMarkIfFirstOneFailed(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		l := w.Acquire(c, "job", leasehold.Once("mon"))
		wire.SetFault(lab.Out)
		ended := w.Ended()
		lab.WantFailed(t, "release without a table", l.Release(ended, leasehold.MarkDone()))
		wire.SetFault(nil)
		w.Release(l)
		isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("mon"))), "mon")
	})
}

func TestReleaseWithOptionMarkDoneFailsForResumedLock(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		lock := w.Resume(c, w.Detach(w.Acquire(c, "job", leasehold.Once("v1"))))
		err := lock.Release(t.Context(), leasehold.MarkDone())
		if err == nil || !strings.Contains(err.Error(), "a resumed lock has forgotten Once") || strings.Contains(err.Error(), "was not acquired") {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
		w.Release(w.Acquire(c, "job", leasehold.Once("v1"))) // no mark is stored, so the work may be done again
	})
}

func TestReleaseDetectsDoneMarkStoredByUnansweredCommit(t *testing.T) {
	for name, since := range map[string]func(w *lab.World){
		"no later grant": func(*lab.World) {},
		"granted to another client": func(w *lab.World) {
			w.Release(holds(w, "job"))
		},
		"deleted": func(w *lab.World) { w.Delete("job") },
	} {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, loss found before Release: %t", name, found), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire, lock := w.Work().Holding(lab.Config(), leasehold.Once("mon"))
					wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
						_, _ = r.Send()
						wire.SetFault(lab.Cut)
						return lab.Cut(r)
					}))
					lab.WantErr(t, "commit and release", lock.CommitAndRelease(w.Within(time.Second), lab.Writes(lab.Note("a", "1"))), leasehold.ErrUnknownOutcome)
					since(w)
					wire.SetFault(nil)
					// During these five seconds, the client repeats the release in the background
					// and finds that the lock is lost.
					if found {
						lab.Elapse(5 * time.Second)
					}
					err := lock.Release(t.Context(), leasehold.MarkDone())
					if name == "deleted" {
						lab.WantErr(t, "the mark was stored, and is gone", err, leasehold.ErrUnknownOutcome)
						return
					}
					lab.WantErr(t, "the mark is stored", err, nil)
					isDone(t, lab.ErrorOf(c.Acquire(t.Context(), "job", leasehold.Once("mon"))), "mon")
				})
			})
		}
	}
}
