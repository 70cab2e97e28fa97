package hold_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// The call returns the same error as the lock's context and Err, although the release by
// Close ended the trust.
func TestCallInterruptedByCloseReturnsErrClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		throttled func(lab.Call) bool
		call      func(ctx context.Context, lock *leasehold.Lock) error
	}{
		"commit": {lab.Call.Commits, func(ctx context.Context, lock *leasehold.Lock) error {
			return lock.Commit(ctx, lab.Writes(lab.Note("a", "1")))
		}},
		"renewal": {func(c lab.Call) bool { return c.Renews() && slices.Contains(c.Keys(), "job") }, func(ctx context.Context, lock *leasehold.Lock) error { return lock.Renew(ctx) }},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shared lease %v", name, shared), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					cfg := lab.Config()
					cfg.SharedLease = shared
					c, wire := w.Client(cfg)
					lock := w.Acquire(c, "job")
					wire.SetFault(func(r *lab.Request) (*http.Response, error) {
						if tc.throttled(r.Call) {
							return lab.Throttled(r)
						}
						return r.Send()
					})
					ended := make(chan error, 1)
					go func() { ended <- tc.call(context.Background(), lock) }()
					lab.Elapse(time.Second)
					if err := c.Close(t.Context()); err != nil {
						t.Errorf("close: %v", err)
					}
					if err := <-ended; !errors.Is(err, leasehold.ErrClosed) || errors.Is(err, leasehold.ErrReleased) {
						t.Errorf("%v; the lock says: %v", err, lock.Err())
					}
				})
			})
		}
	}
}
