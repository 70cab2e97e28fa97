package acquire_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestRecordLeftByHandOverIsUsedOnceWithinTwoSeconds(t *testing.T) {
	var l acquire.Left
	key := protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	for after, want := range map[time.Duration]bool{0: true, 2*time.Second - 1: true, 2 * time.Second: false} {
		l.Note(key, protocol.Item{}, at(0))
		if _, sent, ok := l.Take(key, at(after)); ok != want || sent != at(0) && ok {
			t.Errorf("after %v: %v, sent at %v", after, ok, sent)
		}
		if _, _, ok := l.Take(key, at(after)); ok {
			t.Errorf("after %v: taken twice", after)
		}
	}
}

func TestRecordsLeftByHandOversAreKeptForSeveralKeys(t *testing.T) {
	var l acquire.Left
	old, key := protocol.Key{Partition: "old"}, protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	l.Note(old, protocol.Item{}, at(0))
	l.Note(key, protocol.Item{}, at(time.Second))
	for _, k := range []protocol.Key{old, key} {
		if _, _, ok := l.Take(k, at(1500*time.Millisecond)); !ok {
			t.Errorf("%s is forgotten", k)
		}
	}
}

// A grant that was handed over has the id of its waiter's queue entry. So the client of that
// waiter knows the id as that of one of its own attempts.
func TestResumeDoesNotMistakeHandedOverGrantForOwnAttempt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(holder, "job")
		next := w.Queue(c, "job")
		lab.OK(t, lock.Renew(t.Context())) // the reply to this renewal shows the queue to the holder
		wire.Sent()
		w.Release(lock)
		handed := <-next
		if n := lab.Count(wire.Sent(), lab.Call.Grants); n > 0 {
			t.Fatal("it was not handed over")
		}
		other, _ := w.Client(lab.Config())
		resumed := w.Resume(other, w.Detach(handed))
		if _, err := c.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("error %v, though another process holds the key", err)
		}
		w.Release(resumed)
	})
}
