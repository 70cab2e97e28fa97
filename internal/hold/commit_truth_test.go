package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// appliedUnheard applies the next commit, calls then, and drops the reply to the commit.
func appliedUnheard(wire *lab.Wire, then func()) {
	wire.SetFault(lab.Once(lab.Call.Commits, func(r *lab.Request) (*http.Response, error) {
		_, _ = r.Send()
		then()
		return lab.Cut(r)
	}))
}

// isUnknownAlone fails the test unless err matches ErrUnknownOutcome and does not report a
// lost lock.
func isUnknownAlone(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, leasehold.ErrUnknownOutcome) || errors.Is(err, leasehold.ErrLost) || reasonOf(err) != "" {
		t.Errorf("want an unknown outcome, and no loss: %v", err)
	}
}

func TestCommitAndReleaseWithUnknownOutcomeReportsNoLoss(t *testing.T) {
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

func TestCommitReportsOnlyUnknownOutcomeIfLockIsAlsoLost(t *testing.T) {
	for name, commit := range map[string]func(ctx context.Context, h held) error{
		"Commit":           func(ctx context.Context, h held) error { return h.Commit(ctx, noted("1")) },
		"CommitAndRelease": func(ctx context.Context, h held) error { return h.CommitAndRelease(ctx, noted("1")) },
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, map[string]string{
				"its own lock is lost": "job", "the other is lost": "outer",
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
