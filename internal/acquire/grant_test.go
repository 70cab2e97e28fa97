package acquire_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestUnansweredGrantRequestTimesOutWithinOneLease(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Cut))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second))
		lab.WantTook(t, "Acquire took", began, 0, 1100*time.Millisecond)
		w.Release(lock)
	})
}

func TestAcquireRetriesGrantUntilDynamoDBAnswers(t *testing.T) {
	type row struct {
		acquire func(ctx context.Context, c *leasehold.Client) error
		grants  int32
	}
	lab.Each(t, map[string]row{
		"Acquire": {func(ctx context.Context, c *leasehold.Client) error { return lab.ErrorOf(c.Acquire(ctx, "a")) }, 1},
		"AcquireAny": {func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAny(ctx, leasehold.Keys("a", "b")))
		}, 1},
		"AcquireAll": {func(ctx context.Context, c *leasehold.Client) error {
			return lab.ErrorOf(c.AcquireAll(ctx, leasehold.Keys("a", "b")))
		}, 2},
	}, func(t *testing.T, w *lab.World, by row) {
		c, wire := w.Client(lab.Config())
		var asked atomic.Int32
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() && asked.Add(1) <= 250 {
				return nil, lab.ErrReset
			}
			return r.Send()
		})
		if err := by.acquire(w.Within(time.Hour), c); err != nil || asked.Load() != 250+by.grants {
			t.Errorf("after %d requests: %v", asked.Load(), err)
		}
		_ = c.Close(t.Context())
	})
}

func TestAcquireSucceedsIfFirstRequestArrivesAfterItsRetries(t *testing.T) {
	type variant struct{ arrives, mended int32 } // numbers of grants, counted from 1
	lab.Each(t, map[string]variant{
		"condition no longer names it": {60, 60}, // by request 60, the condition of a grant names only attempts that are newer than the first attempt
		"applied half an hour ago":     {1, 2000},
	}, func(t *testing.T, w *lab.World, v variant) {
		cfg := lab.Config()
		cfg.Lease = time.Hour
		c, wire := w.Client(cfg)
		var asked atomic.Int32
		var first *lab.Request
		var mended time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Grants() || !mended.IsZero() {
				return r.Send()
			}
			n := asked.Add(1)
			if n == 1 {
				first = r
			}
			if n == v.arrives {
				_, _ = first.Send()
			}
			if n == v.mended {
				mended = time.Now()
			}
			return nil, lab.ErrReset
		})
		lock := w.Acquire(c, "job")
		lab.WantTook(t, "granted after the network was mended", mended, 0, 5*time.Second)
		w.Release(lock)
	})
}

func TestAcquireReleasesGrantIfRecordIsUnreadable(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		lab.WantAs[*leasehold.RecordError](t, "Acquire", lab.ErrorOf(c.Acquire(t.Context(), "job")))
		lab.Elapse(5 * time.Second)
		w.WantReleased("job")
	})
}

func TestAcquireIsNotBlockedByDelayedGrantOfPreviousCall(t *testing.T) {
	lab.Each(t, map[string]func(w *lab.World, c *leasehold.Client){
		"one key":      func(w *lab.World, c *leasehold.Client) { w.Release(w.Acquire(c, "a")) },
		"several keys": func(w *lab.World, c *leasehold.Client) { w.Release(w.AcquireAll(c, leasehold.Keys("a", "b"))) },
	}, func(t *testing.T, w *lab.World, work func(w *lab.World, c *leasehold.Client)) {
		c, wire := w.Client(lab.Config())
		work(w, c)
		var late func() (*http.Response, error)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			late = r.Send
			return nil, lab.ErrReset
		}))
		work(w, c)
		_, _ = late()
		if w.IsReleased("a") {
			t.Fatal("the delayed attempt was not applied")
		}
		began := time.Now()
		w.Release(w.Acquire(c, "a"))
		lab.WantTook(t, "waited for a grant of its own that no caller uses", began, 0, time.Second)
	})
}

func TestCachedRecordExpiresAfterTwoSecondsOrOneUse(t *testing.T) {
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

func TestClientCachesRecordsOfSeveralHandedOverKeys(t *testing.T) {
	var l acquire.Left
	old, key := protocol.Key{Partition: "old"}, protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	l.Note(old, protocol.Item{}, at(0))
	l.Note(key, protocol.Item{}, at(time.Second))
	for _, k := range []protocol.Key{old, key} {
		if _, _, ok := l.Take(k, at(1500*time.Millisecond)); !ok {
			t.Errorf("the record of %s is not cached", k)
		}
	}
}

// The id of a handed-over grant is the version of the waiter's queue entry, and the waiter's client
// remembers this version. If another process resumes the grant, the client must not treat the grant
// as an abandoned attempt of its own: otherwise it would take the key over.
func TestClientDoesNotTakeBackLockThatOtherClientHasResumed(t *testing.T) {
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
			t.Fatal("the key was not handed over")
		}
		other, _ := w.Client(lab.Config())
		resumed := w.Resume(other, w.Detach(handed))
		lab.WantErr(t, "TryAcquire while another process holds the key", lab.ErrorOf(c.TryAcquire(t.Context(), "job")), leasehold.ErrHeld)
		w.Release(resumed)
	})
}
