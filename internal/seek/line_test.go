package seek_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/seek"
)

// leaving is a context that has ended. Asked why, it does something first.
type leaving struct {
	context.Context
	first func()
}

func (l leaving) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (l leaving) Err() error {
	l.first()
	return context.Canceled
}

func TestWithoutRenewalAKeyThatIsHandedToACallerWhoLeavesIsFreeWhenTheCallReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		h := c.one("job")
		c.Detach = func(undo func()) {
			c.running.Go(func() { time.Sleep(time.Second); undo() })
		}
		ctx := leaving{context.WithoutCancel(t.Context()), func() {
			next := c.Lines.Successor(h.want.Key, h)
			if !c.Lines.HandOver(next, next.Caller.Want.Hold(t.Context(), h.grant)) {
				t.Error("it has left already")
			}
		}}
		if _, err := c.One(ctx, c.want("job", func(want *seek.Want) { want.Manual = true })); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if held := w.owner("job"); held != "" || len(c.given) != 1 {
			t.Errorf("held by %q; gave back %v", held, c.given)
		}
	})
}
