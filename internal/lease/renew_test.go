package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestARenewalForACallerWhoHasLeftIsNotSentAndNotASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(manual)
		defer w.end()
		ctx, leave := context.WithCancelCause(t.Context())
		errLeft := errors.New("left")
		leave(errLeft)
		if unknown, err := w.lease.Renew(ctx, Changes{}); !errors.Is(err, errLeft) || unknown || w.requests() != 0 {
			t.Errorf("unknown: %v, %v, after %d requests", unknown, err, w.requests())
		}
	})
}

func TestACallerWhoLeavesBehindAnothersRenewalIsToldHowItsOwnFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(manual)
		defer w.end()
		w.will(dropped)
		time.AfterFunc(time.Millisecond, func() { w.lease.enter(context.Background()) }) // before the next attempt
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if unknown, err := w.lease.Renew(ctx, Changes{}); !errors.Is(err, errLost) || !unknown || w.requests() != 1 {
			t.Errorf("unknown: %v, %v, after %d requests", unknown, err, w.requests())
		}
	})
}
