package hold_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestARefusalAfterALostReplyIsAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		fits func(lab.Call) bool
		do   func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error
	}{
		"renew": {lab.Call.Renews, func(ctx context.Context, _ *leasehold.Client, lock *leasehold.Lock) error {
			return lock.Renew(ctx, leasehold.WithData([]byte("x")))
		}},
		"break": {lab.Call.Releases, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			return c.Break(ctx, lock.Record())
		}},
		"resume": {lab.Call.Renews, func(ctx context.Context, c *leasehold.Client, lock *leasehold.Lock) error {
			g, err := lock.Detach()
			if err != nil {
				return err
			}
			_, err = c.Resume(ctx, g)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
				lost := false
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if tc.fits(r.Call) && !lost {
						lost = true
						return lab.LoseReply(r)
					}
					return lab.Refusal(400, "AccessDeniedException"), nil
				})
				if err := tc.do(t.Context(), c, lock); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("landed, then refused: %v", err)
				}
				wire.SetFault(nil)
				_ = lock.Release(t.Context())
			})
		})
	}
}
