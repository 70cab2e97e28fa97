package hold_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// Callers may assert the type: the documentation says that the error is a *LostError.
func TestLossIsReturnedAsUnwrappedLostError(t *testing.T) {
	isLostError := func(t *testing.T, what string, err error) {
		t.Helper()
		if _, ok := err.(*leasehold.LostError); !ok { // no errors.As here: the error itself must have the type
			t.Errorf("%s: %T: %v", what, err, err)
		}
	}
	for name, cfg := range map[string]leasehold.Config{"alone": lab.Config(), "under a shared lease": lab.SharedConfig()} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var mu sync.Mutex
				var reported []error
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Kind == leasehold.EventLost {
						reported = append(reported, e.Err)
					}
				}
				c, wire := w.Client(cfg)
				broken, expired := w.Acquire(c, "broken"), w.Acquire(c, "expired")
				if err := c.Break(t.Context(), broken.Record(), leasehold.BreakOptions{}); err != nil {
					t.Fatal(err)
				}
				isLostError(t, "commit", broken.Commit(t.Context(), nil))
				isLostError(t, "release after it", broken.Release(t.Context()))
				wire.SetFault(lab.Cut)
				lab.Elapse(time.Minute)
				wire.SetFault(nil)
				for _, lock := range []*leasehold.Lock{broken, expired} {
					isLostError(t, "cause", context.Cause(lock.Context()))
					isLostError(t, "Err", lock.Err())
					isLostError(t, "renew", lock.Renew(t.Context()))
				}
				_ = c.Close(t.Context())
				if len(reported) != 2 {
					t.Errorf("%d losses are reported", len(reported))
				}
				for _, err := range reported {
					isLostError(t, "event", err)
				}
			})
		})
	}
}

func TestLostLockErrorNamesNewHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(w *lab.World)
		reason  leasehold.LostReason
	}{
		"replaced": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x"), "ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"resumed elsewhere": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x")})
		}, leasehold.LostReplaced},
		"broken": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
		}, leasehold.LostBroken},
		// An operator has changed the record by hand, without a new version.
		"marked released": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")})
		}, leasehold.LostBroken},
		"given to another": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"given to another, who has released it": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa"), "isReleased": lab.Str("1")})
		}, leasehold.LostReplaced},
		"another grant": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"grantId": lab.Str("x")})
		}, leasehold.LostReplaced},
		"deleted": {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken},
		"damaged": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": nil})
		}, leasehold.LostBroken},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				var events []leasehold.Event
				cfg := lab.Config()
				cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
					if e.Kind == leasehold.EventLost {
						events = append(events, e)
					}
				}
				c, wire := w.Client(cfg)
				lock := w.Acquire(c, "job")
				tc.happens(w)
				before := w.Item("job")
				lab.Elapse(6 * time.Second)
				var lost *leasehold.LostError
				if !errors.As(lock.Err(), &lost) || lost.Reason != tc.reason {
					t.Fatalf("error %v", lock.Err())
				}
				if len(events) != 1 {
					t.Errorf("%d events", len(events))
				}
				wire.Sent()
				if err := lock.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("release: %v", err)
				}
				if n := len(wire.Sent()); n != 0 {
					t.Errorf("%d requests to release what is gone", n)
				}
				if after := w.Item("job"); len(after) != len(before) || lab.Text(after, "recordVersionNumber") != lab.Text(before, "recordVersionNumber") {
					t.Errorf("the loser changed the record to %v", after)
				}
			})
		})
	}
}

func TestLossAfterLaterGrantIsReportedAsReplacedNotBroken(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
		w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x"), "isReleased": lab.Str("1")})
		var lost *leasehold.LostError
		if err := lock.Renew(t.Context()); !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced {
			t.Errorf("error %v", err)
		}
		_ = lock.Release(t.Context())
	})
}
