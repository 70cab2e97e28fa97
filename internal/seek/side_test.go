package seek_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// as wants one side of a read/write lock.
func (w *world) as(mode protocol.Mode) func(*seek.Want) {
	return func(want *seek.Want) {
		want.Mode, want.Side = mode, w.proto.(protocol.ReadWriting).ReadWrite(mode, want.NoWait)
	}
}

func TestReadersShareAKeyAndAWriterWaitsForThemAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.client("a").one("job", w.as(protocol.ModeRead)), w.client("b").one("job", w.as(protocol.ModeRead))
		c, began := w.client("writer"), time.Now()
		time.AfterFunc(3*time.Second, a.release)
		time.AfterFunc(5*time.Second, b.release)
		h := c.one("job", w.as(protocol.ModeWrite))
		if waited := time.Since(began); waited < 5*time.Second || waited > 8*time.Second || h.grant.Dead != nil {
			t.Errorf("granted after %v: %+v", waited, h.grant)
		}
		c.left()
	})
}

func TestAWriterThatWaitsKeepsNewReadersOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("a").one("job", w.as(protocol.ModeRead))
		writer := w.client("writer")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = writer.One(ctx, writer.want("job", w.as(protocol.ModeWrite)))
		}()
		time.Sleep(2 * time.Second) // it has posted its intent
		reader := w.client("b")
		_, err := reader.One(t.Context(), reader.want("job", noWait, w.as(protocol.ModeRead)))
		if held := (*heldError)(nil); !errors.As(err, &held) {
			t.Errorf("%v", err)
		}
		cancel()
		<-gone
		writer.left() // and takes its intent along
		reader.one("job", w.as(protocol.ModeRead))
		reader.left()
	})
}

func TestAWriterTakesOverDeadReaders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("dead").one("job", w.as(protocol.ModeRead))
		c, began := w.client("writer"), time.Now()
		h := c.one("job", w.as(protocol.ModeWrite))
		if waited := time.Since(began); waited != timing.Lease {
			t.Errorf("after %v", waited)
		}
		if h.grant.Dead == nil || name(h.grant.Dead.Owner) != "dead" {
			t.Errorf("it has taken over %+v", h.grant.Dead)
		}
		c.left()
	})
}

func TestReadersRemoveReadersThatHaveBeenDeadForALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.client("dead").one("job", w.as(protocol.ModeRead))
		c := w.client("reader")
		entries := func() int {
			all, err := w.proto.(protocol.ReadWriting).Entries(w.item("job"))
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		for _, tc := range []struct {
			after time.Duration
			want  int
		}{{0, 2}, {2*timing.Lease - 1, 3}, {1, 2}} { // by then the first of its own is dead, too
			time.Sleep(tc.after)
			c.one("job", w.as(protocol.ModeRead))
			c.left()
			if got := entries(); got != tc.want {
				t.Errorf("%v later the row has %d entries, want %d", tc.after, got, tc.want)
			}
		}
	})
}
