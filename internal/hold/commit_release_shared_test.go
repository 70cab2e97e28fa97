package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// sharedGrant is a grant of "job" with two handles, outer and inner. The handle inner commits
// alone, or in a group with a lock of "other", whose grant has only one handle.
type sharedGrant struct {
	*lab.World
	c            *leasehold.Client
	wire         *lab.Wire
	outer, inner *leasehold.Lock
	commits      held // inner, or the group of inner and "other"
}

func newSharedGrant(t *testing.T, w *lab.World, cfg leasehold.Config, grouped bool) *sharedGrant {
	t.Helper()
	s := &sharedGrant{World: w.Work()}
	s.c, s.wire = w.Client(cfg)
	s.outer = w.Acquire(s.c, "job")
	keys := []string{"job"}
	if grouped {
		keys = append(keys, "other")
	}
	g := reentrant(w, s.c, s.outer, keys...)
	s.inner, s.commits = g.Locks()[0], g.Locks()[0]
	if grouped {
		s.commits = g
	}
	s.wire.Sent()
	return s
}

func (s *sharedGrant) commitAndRelease(ctx context.Context, value string, opts ...leasehold.ReleaseOption) error {
	return s.commits.CommitAndRelease(ctx, noted(value), opts...)
}

// grouped maps the name of a subtest to a value for newSharedGrant's parameter "grouped".
var grouped = map[string]bool{"alone": false, "in a group": true}

func TestCommitAndReleaseReturnsNilIfCommitIsApplied(t *testing.T) {
	noMore := func(s *sharedGrant) { s.wire.SetFault(lab.Cut) }
	// Each function is called after the commit was applied, and before its reply arrives.
	for name, between := range map[string]func(s *sharedGrant){
		"nothing":                 func(*sharedGrant) {},
		"granted to other client": func(s *sharedGrant) { s.Steal("job") },
		"other key granted":       func(s *sharedGrant) { s.Steal("other") },
		"lease expired":           func(s *sharedGrant) { noMore(s); lab.Elapse(21 * time.Second) },
		"loss noticed":            func(s *sharedGrant) { s.Steal("job"); _ = s.outer.Renew(s.T.Context()) },
		"detached":                func(s *sharedGrant) { _ = s.outer.Release(s.T.Context()); _, _ = s.inner.Detach() },
		"closed":                  func(s *sharedGrant) { lab.Go(func() error { return s.c.Close(s.T.Context()) }) },
		"no reply to release":     noMore,
		"last handle, no reply":   func(s *sharedGrant) { _ = s.outer.Release(s.T.Context()); noMore(s) },
		"last handle, lock lost":  func(s *sharedGrant) { _ = s.outer.Release(s.T.Context()); s.Steal("job") },
	} {
		for where, grouped := range grouped {
			if name == "other key granted" && !grouped {
				continue
			}
			t.Run(name+", "+where, func(t *testing.T) {
				lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
					s := newSharedGrant(t, w, cfg, grouped)
					s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
						res, err := r.Send()
						between(s)
						return res, err
					}))
					lab.WantErr(t, "commit and release", s.commitAndRelease(t.Context(), "1"), nil)
					w.WantLog("1")
					s.wire.SetFault(nil)
					_ = s.c.Close(t.Context())
				})
			})
		}
	}
}

func TestCommitAndReleaseOfOneHandleLeavesOtherHandleHeld(t *testing.T) {
	lab.Each(t, grouped, func(t *testing.T, w *lab.World, grouped bool) {
		s := newSharedGrant(t, w, lab.Config(), grouped)
		s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			lab.WantErr(t, "handle that commits", s.inner.Err(), leasehold.ErrReleased)
			lab.WantErr(t, "other handle", s.outer.Err(), nil)
			return r.Send()
		}))
		lab.WantErr(t, "commit and release", s.commitAndRelease(s.inner.Context(), "1"), nil)
		lab.WantErr(t, "second commit and release", s.commitAndRelease(t.Context(), "2"), leasehold.ErrReleased)
		lab.WantErr(t, "the other handle", s.outer.Commit(t.Context(), noted("3")), nil)
		w.WantLog("1", "3")
		w.Release(s.outer)
	})
}

func TestCommitAndReleaseOfReentrantGroupLeavesOuterLockHeld(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), true)
		lab.OK(t, s.commitAndRelease(t.Context(), "1"))
		if sent := s.wire.Sent(); len(sent) != 1 || !sent[0].Commits() {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		lab.Want(t, "job is released", w.IsReleased("job"), false)
		w.WantReleased("other")
		w.Release(s.outer)
		w.WantReleased("job")
		w.WantLog("1")
	})
}

// Two handles of a grant commit and release at the same time. The commit that is applied
// first must not free the key, because the other commit would then be rejected.
func TestTwoHandlesOfGrantCanCommitAndReleaseConcurrently(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), false)
		s.wire.SetFault(lab.Script(lab.Slow(time.Second), lab.Slow(time.Second)))
		errs := make(chan error, 2)
		for i, lock := range []*leasehold.Lock{s.outer, s.inner} {
			go func() { errs <- lock.CommitAndRelease(t.Context(), noted(fmt.Sprint(i))) }()
			synctest.Wait()
		}
		for range 2 {
			lab.WantErr(t, "commit and release", <-errs, nil)
		}
		w.WantLog("0", "1")
		w.WantReleased("job")
	})
}

// The outer handle is released while the inner one commits and releases. So the inner handle is the
// grant's last, and its second Release must wait until the key is free.
func TestReleaseAfterCommitAndReleaseWaitsUntilKeyIsFree(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		s := newSharedGrant(t, w, cfg, false)
		s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			lab.WantErr(t, "release of the other handle", s.outer.Release(t.Context()), nil)
			s.wire.SetFault(lab.On(lab.Call.Releases, lab.Throttled))
			return r.Send()
		}))
		lab.WantFailed(t, "commit and release", s.inner.CommitAndRelease(w.Within(5*time.Second), lab.Writes(lab.NoteIf("a", "1"))))
		released := lab.Go(func() error { return s.inner.Release(t.Context()) })
		lab.Elapse(time.Second)
		lab.Want(t, "results of the second release during the throttling", len(released), 0)
		s.wire.SetFault(nil)
		lab.WantErr(t, "second release", <-released, nil)
		w.WantReleased("job")
		_ = s.c.Close(t.Context())
	})
}

func TestHandleIsUnusableAfterFailedCommitAndRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(s *sharedGrant)
		fault  lab.Fault
		want   error
		opts   []leasehold.ReleaseOption
	}{
		"lost":             {func(s *sharedGrant) { s.Steal("job") }, nil, leasehold.ErrLost, nil},
		"lost and noticed": {func(s *sharedGrant) { s.Steal("job"); _ = s.outer.Renew(s.T.Context()) }, nil, leasehold.ErrLost, nil},
		"never answered":   {func(*sharedGrant) {}, lab.Cut, leasehold.ErrUnknownOutcome, nil},
		"with data":        {func(*sharedGrant) {}, nil, nil, []leasehold.ReleaseOption{leasehold.WithData([]byte("d"))}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, grouped, func(t *testing.T, w *lab.World, grouped bool) {
				s := newSharedGrant(t, w, lab.Config(), grouped)
				tc.before(s)
				s.wire.SetFault(tc.fault)
				began := time.Now()
				err := s.commitAndRelease(w.Within(3*time.Second), "1", tc.opts...)
				if took := time.Since(began); err == nil || tc.want != nil && !errors.Is(err, tc.want) || took > 3*time.Second {
					t.Errorf("error %v after %v, want %v", err, took, tc.want)
				}
				lab.WantFailed(t, "handle after a failed commit", s.inner.Err())
				s.wire.SetFault(nil)
				lab.Elapse(time.Minute)
				w.WantLog()
				if grouped && tc.fault == nil && !w.IsReleased("other") {
					t.Error("the other key is not free")
				}
				_ = s.c.Close(t.Context())
			})
		})
	}
}

func TestUnansweredCommitDoesNotBlockReleaseOfOtherHandle(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), false)
		s.wire.SetFault(lab.Cut)
		lab.WantErr(t, "commit and release", s.commitAndRelease(w.Within(2500*time.Millisecond), "1"), leasehold.ErrUnknownOutcome)
		s.wire.SetFault(nil) // later requests are answered, but the commit never is
		w.Release(s.outer)
		w.WantReleased("job")
	})
}

func TestCommitIsNotRetriedAfterConflictIfLockIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), true)
		s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			s.Steal("job")
			_ = s.outer.Renew(t.Context())
			s.wire.Sent()
			return lab.Cancellation("None", "TransactionConflict", "None"), nil
		}))
		lab.WantErr(t, "commit and release", s.commitAndRelease(t.Context(), "1"), leasehold.ErrLost)
		lab.Want(t, "further commits", lab.Commits(s.wire.Sent()), 0)
		w.WantReleased("other")
		w.WantLog()
	})
}

// appliedUnheard makes the simulated network deliver the next commit to DynamoDB, which applies it.
// The network then calls the function in the parameter "between", and drops the reply to the
// commit.
func appliedUnheard(wire *lab.Wire, between func()) {
	wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
		_, _ = r.Send()
		between()
		return lab.Cut(r)
	}))
}

// isUnknownAlone fails the test unless err matches ErrUnknownOutcome and does not report a
// lost lock.
func isUnknownAlone(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.Is(err, leasehold.ErrLost) || reasonOf(err) != "" {
		t.Errorf("want an unknown outcome and no loss, got %v", err)
	}
}

func TestCommitAndReleaseWithoutReplyDoesNotReturnErrLost(t *testing.T) {
	another := func(w *lab.World) *leasehold.Lock {
		other, _ := w.Client(lab.Config())
		return w.Acquire(other, "job")
	}
	// Each function changes the record after the commit was applied.
	for name, found := range map[string]func(w *lab.World){
		"another grant":          func(w *lab.World) { another(w) },
		"another grant released": func(w *lab.World) { w.Release(another(w)) },
		"no record":              func(w *lab.World) { w.Delete("job") },
	} {
		for _, keys := range [][]leasehold.Key{leasehold.Keys("job"), leasehold.Keys("job", "other")} {
			for by, commit := range map[string]func(context.Context, *leasehold.Group) error{
				"the caller": func(ctx context.Context, g *leasehold.Group) error { return g.CommitAndRelease(ctx, noted("1")) },
				"Do": func(ctx context.Context, g *leasehold.Group) error {
					return g.Do(ctx, func(ctx context.Context, g *leasehold.Group) error { return g.CommitAndRelease(ctx, noted("1")) })
				},
			} {
				t.Run(fmt.Sprintf("%s, %d keys, by %s", name, len(keys), by), func(t *testing.T) {
					lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
						c, wire := w.Work().Client(cfg)
						g := w.AcquireAll(c, keys)
						appliedUnheard(wire, func() {
							lab.Go(func() error { return c.Close(t.Context()) })
							found(w)
						})
						isUnknownAlone(t, commit(t.Context(), g))
						w.WantLog("1")
					})
				})
			}
		}
	}
}

func TestUnansweredCommitReturnsErrUnknownOutcomeIfLockIsLost(t *testing.T) {
	for name, commit := range map[string]func(ctx context.Context, h held) error{
		"Commit":           func(ctx context.Context, h held) error { return h.Commit(ctx, noted("1")) },
		"CommitAndRelease": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("1")) },
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, map[string]string{
				"own lock lost": "job", "other lock lost": "outer",
			}, func(t *testing.T, w *lab.World, lost string) {
				_, wire, lock := w.Work().Holding(lab.Config())
				other, _ := w.Client(lab.Config())
				outer := w.Acquire(other, "outer")
				ctx, cancel := lock.Bind(outer.Context())
				defer cancel()
				appliedUnheard(wire, func() {
					wire.SetFault(lab.Cut) // the commit is sent again, but gets no reply either
					w.Steal(lost)
					if lost == "outer" {
						_ = outer.Renew(t.Context())
					} else {
						lab.Elapse(21 * time.Second)
					}
				})
				isUnknownAlone(t, commit(ctx, lock))
				w.WantLog("1")
				wire.SetFault(nil)
				lab.Elapse(time.Minute) // let the requests in flight end
			})
		})
	}
}
