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

// sharedGrant is a handle of "job" whose grant another handle shares. It is alone, or in a
// group with "other", whose grant is not shared.
type sharedGrant struct {
	*lab.World
	c            *leasehold.Client
	wire         *lab.Wire
	outer, inner *leasehold.Lock
	group        *leasehold.Group // group of inner and "other"; nil if inner is alone
}

func newSharedGrant(t *testing.T, w *lab.World, cfg leasehold.Config, grouped bool) *sharedGrant {
	t.Helper()
	s := &sharedGrant{World: w.Work()}
	s.c, s.wire = w.Client(cfg)
	s.outer = w.Acquire(s.c, "job")
	g, err := s.c.AcquireAll(s.outer.Context(), leasehold.Keys("job", "other")[:map[bool]int{false: 1, true: 2}[grouped]], leasehold.Reentrant())
	if err != nil {
		t.Fatal(err)
	}
	s.inner = g.Locks()[0]
	if grouped {
		s.group = g
	}
	s.wire.Sent()
	return s
}

func (s *sharedGrant) commitAndRelease(ctx context.Context, value string, opts ...leasehold.ReleaseOption) error {
	if s.group != nil {
		return s.group.CommitAndRelease(ctx, lab.Writes(lab.Note("a", value)), opts...)
	}
	return s.inner.CommitAndRelease(ctx, lab.Writes(lab.Note("a", value)), opts...)
}

func TestCommitAndReleaseOfSharedHandleSucceedsOnceApplied(t *testing.T) {
	noMore := func(s *sharedGrant) { s.wire.SetFault(lab.Cut) }
	for name, between := range map[string]func(s *sharedGrant){ // called between the applied commit and its reply
		"nothing":                  func(*sharedGrant) {},
		"granted to another":       func(s *sharedGrant) { s.Steal("job") },
		"and the other key":        func(s *sharedGrant) { s.Steal("other") },
		"the trust has ended":      func(s *sharedGrant) { noMore(s); lab.Elapse(21 * time.Second) },
		"noticed as lost":          func(s *sharedGrant) { s.Steal("job"); _ = s.outer.Renew(s.T.Context()) },
		"detached":                 func(s *sharedGrant) { _ = s.outer.Release(s.T.Context()); _, _ = s.inner.Detach() },
		"closed":                   func(s *sharedGrant) { go func() { _ = s.c.Close(s.T.Context()) }(); synctest.Wait() },
		"no release is answered":   noMore,
		"the last, not answered":   func(s *sharedGrant) { _ = s.outer.Release(s.T.Context()); noMore(s) },
		"the last, and it is lost": func(s *sharedGrant) { _ = s.outer.Release(s.T.Context()); s.Steal("job") },
	} {
		for _, cfg := range []leasehold.Config{lab.Config(), lab.SharedConfig()} {
			for _, grouped := range []bool{false, true} {
				if name == "and the other key" && !grouped {
					continue
				}
				t.Run(fmt.Sprintf("%s, in a group %t, shared lease %t", name, grouped, cfg.SharedLease), func(t *testing.T) {
					lab.InBubble(t, func(t *testing.T, w *lab.World) {
						s := newSharedGrant(t, w, cfg, grouped)
						s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
							res, err := r.Send()
							between(s)
							return res, err
						}))
						if err := s.commitAndRelease(t.Context(), "1"); err != nil {
							t.Errorf("it has landed: %v", err)
						}
						w.WantLog("1")
						s.wire.SetFault(nil)
						_ = s.c.Close(t.Context())
					})
				})
			}
		}
	}
}

func TestCommitAndReleaseEndsContextOfSharedHandleFirst(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		t.Run(fmt.Sprintf("in a group: %t", grouped), func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				s := newSharedGrant(t, w, lab.Config(), grouped)
				s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
					if err := s.inner.Err(); !errors.Is(err, leasehold.ErrReleased) || s.outer.Err() != nil {
						t.Errorf("when it was sent: %v, and the other handle: %v", err, s.outer.Err())
					}
					return r.Send()
				}))
				if err := s.commitAndRelease(s.inner.Context(), "1"); err != nil {
					t.Error(err)
				}
				if err := s.commitAndRelease(t.Context(), "2"); !errors.Is(err, leasehold.ErrReleased) {
					t.Errorf("again: %v", err)
				}
				if err := s.outer.Commit(t.Context(), lab.Writes(lab.Note("a", "3"))); err != nil {
					t.Errorf("the other handle: %v", err)
				}
				w.WantLog("1", "3")
				w.Release(s.outer)
			})
		})
	}
}

func TestGroupCommitAndReleaseFreesOnlyUnsharedLocks(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), true)
		if err := s.commitAndRelease(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if sent := s.wire.Sent(); len(sent) != 1 || !sent[0].Commits() {
			t.Errorf("sent %v", lab.Ops(sent))
		}
		if w.IsReleased("job") || !w.IsReleased("other") {
			t.Errorf("job is released: %t, other: %t", w.IsReleased("job"), w.IsReleased("other"))
		}
		w.Release(s.outer)
		if !w.IsReleased("job") {
			t.Error("not free after its last handle")
		}
		w.WantLog("1")
	})
}

// Two handles commit at the same time. Neither may free the key before the other handle's
// writes are applied, and the last handle frees the key.
func TestCommitAndReleaseByAllHandlesAtOnceIsApplied(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), false)
		s.wire.SetFault(lab.Script(lab.Slow(time.Second), lab.Slow(time.Second)))
		errs := make(chan error, 2)
		for i, lock := range []*leasehold.Lock{s.outer, s.inner} {
			go func() { errs <- lock.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", fmt.Sprint(i)))) }()
			synctest.Wait()
		}
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		w.WantLog("0", "1")
		if !w.IsReleased("job") {
			t.Error("not free after its last handle")
		}
	})
}

func TestFailedCommitAndReleaseReleasesSharedHandle(t *testing.T) {
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
		for _, grouped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a group %t", name, grouped), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					s := newSharedGrant(t, w, lab.Config(), grouped)
					tc.before(s)
					s.wire.SetFault(tc.fault)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					began := time.Now()
					if err := s.commitAndRelease(ctx, "1", tc.opts...); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
						t.Errorf("error %v, want %v", err, tc.want)
					}
					if took := time.Since(began); took > 3*time.Second {
						t.Errorf("took %v", took)
					}
					if s.inner.Err() == nil {
						t.Error("the handle has not ended")
					}
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
}

func TestUnansweredCommitDoesNotDelayOtherHandles(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), false)
		s.wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := s.commitAndRelease(ctx, "1"); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		s.wire.SetFault(nil) // the first request is still in flight
		w.Release(s.outer)
		if !w.IsReleased("job") {
			t.Error("not free after its last handle")
		}
	})
}

func TestCommitOfSharedHandleIsNotSentAfterLoss(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		s := newSharedGrant(t, w, lab.Config(), true)
		s.wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
			s.Steal("job")
			_ = s.outer.Renew(t.Context())
			s.wire.Sent()
			return lab.Cancellation("None", "TransactionConflict", "None"), nil
		}))
		if err := s.commitAndRelease(t.Context(), "1"); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("error %v", err)
		}
		if n := lab.Commits(s.wire.Sent()); n > 0 {
			t.Errorf("sent %d more times", n)
		}
		if !w.IsReleased("other") {
			t.Error("the other key is not free")
		}
		w.WantLog()
	})
}
