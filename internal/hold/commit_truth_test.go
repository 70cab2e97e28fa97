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

// appliedUnheard makes the network apply the first commit and drop its reply. In between,
// the network calls the function then.
func appliedUnheard(wire *lab.Wire, then func()) {
	wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
		_, _ = r.Send()
		then()
		return lab.Cut(r)
	}))
}

// isUnknownAlone fails the test unless err is ErrUnknownOutcome and reports no loss.
func isUnknownAlone(t *testing.T, err error) {
	t.Helper()
	var lost *leasehold.LostError
	if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.Is(err, leasehold.ErrLost) || errors.As(err, &lost) {
		t.Errorf("want an unknown outcome, and no loss: %v", err)
	}
}

func TestCommitAndReleaseWithUnknownOutcomeReportsNoLoss(t *testing.T) {
	another := func(w *lab.World) *leasehold.Lock {
		other, _ := w.Client(lab.Config())
		return w.Acquire(other, "job")
	}
	after := map[string]func(w *lab.World){ // changes of the record after the commit
		"another grant":          func(w *lab.World) { another(w) },
		"another grant released": func(w *lab.World) { w.Release(another(w)) },
		"no record":              func(w *lab.World) { w.Delete("job") },
	}
	for name, found := range after {
		for _, cfg := range []leasehold.Config{lab.Config(), lab.SharedConfig()} {
			for _, keys := range [][]leasehold.Key{leasehold.Keys("job"), leasehold.Keys("job", "other")} {
				for _, inDo := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, shared lease %t, %d keys, in Do %t", name, cfg.SharedLease, len(keys), inDo), func(t *testing.T) {
						lab.InBubble(t, func(t *testing.T, w *lab.World) {
							c, wire := w.Work().Client(cfg)
							g := w.AcquireAll(c, keys)
							appliedUnheard(wire, func() {
								go func() { _ = c.Close(t.Context()) }()
								synctest.Wait()
								found(w)
							})
							var err error
							if inDo {
								err = g.Do(t.Context(), func(ctx context.Context, g *leasehold.Group) error {
									return g.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
								})
							} else {
								err = g.CommitAndRelease(t.Context(), lab.Writes(lab.Note("a", "1")))
							}
							isUnknownAlone(t, err)
							w.WantLog("1")
						})
					})
				}
			}
		}
	}
}

func TestCommitWithUnknownOutcomeReportsNoLossOfContextLock(t *testing.T) {
	commit := map[string]func(ctx context.Context, l *leasehold.Lock) error{
		"Commit": func(ctx context.Context, l *leasehold.Lock) error {
			return l.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		},
		"CommitAndRelease": func(ctx context.Context, l *leasehold.Lock) error {
			return l.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")))
		},
	}
	for name, commit := range commit {
		for _, lost := range []string{"job", "outer"} {
			t.Run(fmt.Sprintf("%s, %s lost", name, lost), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					c, wire := w.Work().Client(lab.Config())
					other, _ := w.Client(lab.Config())
					outer := w.Acquire(other, "outer")
					lock := w.Acquire(c, "job")
					ctx, cancel := lock.Bind(outer.Context())
					defer cancel()
					appliedUnheard(wire, func() {
						wire.SetFault(lab.Cut) // repeated requests of the commit get no answer
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
					lab.Elapse(time.Minute) // let the requests in flight return
				})
			})
		}
	}
}

func TestCommitAndReleaseThatWroteNothingReturnsDefiniteError(t *testing.T) {
	refused := func(*lab.Request) (*http.Response, error) { return lab.Refusal(400, "AccessDeniedException"), nil }
	for name, tc := range map[string]struct {
		fault lab.Fault
		is    func(error) bool
	}{
		"a write failed": {(*lab.Request).Send, func(err error) bool { return errors.As(err, new(*leasehold.CommitError)) }},
		"refused":        {refused, func(err error) bool { return true }},
		"lost": {func(r *lab.Request) (*http.Response, error) {
			return lab.Cancellation("None", "ConditionalCheckFailed", "None"), nil
		}, func(err error) bool { return errors.Is(err, leasehold.ErrLost) }},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Work().Client(lab.Config())
				g := w.AcquireAll(c, leasehold.Keys("job", "other"))
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if r.Commits() {
						return tc.fault(r)
					}
					return lab.Cut(r)
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				err := g.CommitAndRelease(ctx, lab.Writes(lab.NoteIf("a", "1")))
				if err == nil || errors.Is(err, leasehold.ErrUnknownOutcome) || !tc.is(err) {
					t.Errorf("nothing was written: %v", err)
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("what became of the releases is not said: %v", err)
				}
				w.WantLog()
				wire.SetFault(nil)
				lab.Elapse(time.Minute) // let the last requests return
			})
		})
	}
}
