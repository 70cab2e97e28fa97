package hold_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestSecondReleaseOfTakenOverKeySendsNothing(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.Config())
		w.Steal("job")
		lab.WantErr(t, "first release", lock.Release(t.Context()), leasehold.ErrLost)
		wire.Sent()
		lab.WantErr(t, "second release", lock.Release(t.Context()), leasehold.ErrLost)
		lab.Want(t, "requests", len(wire.Sent()), 0)
	})
}

func TestReleaseOfExpiredLockFreesKeyByOneRequest(t *testing.T) {
	lab.Each(t, map[string]bool{
		"first release": false, "earlier release refused": true,
	}, func(t *testing.T, w *lab.World, refused bool) {
		_, wire, lock := w.Holding(lab.Config(), leasehold.WithoutRenewal())
		lab.Elapse(time.Hour)
		if refused {
			wire.SetFault(refuseReleases("AccessDeniedException"))
			lab.WantErr(t, "refused release", lock.Release(t.Context()), leasehold.ErrLost)
			wire.SetFault(nil)
		}
		wire.Sent()
		lab.WantErr(t, "release", lock.Release(t.Context()), leasehold.ErrLost)
		lab.Want(t, "requests", len(wire.Sent()), 1)
		w.WantReleased("job")
	})
}

func TestReleaseWithLostReplySucceedsIfClientIsClosedMeanwhile(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire, lock := w.Holding(cfg)
		other, _ := w.Client(lab.Config())
		var closed <-chan error
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			w.Acquire(other, "job")
			closed = lab.Go(func() error { return c.Close(t.Context()) })
			synctest.Wait()
			return nil, lab.ErrReset
		}))
		lab.WantErr(t, "release", lock.Release(t.Context()), nil)
		lab.WantErr(t, "close", <-closed, nil)
	})
}

func TestSecondReleaseSucceedsIfFirstMayHaveDeletedRecord(t *testing.T) {
	type row struct {
		deletes bool
		fate    lab.Fault // fault of the first release
		freed   bool
	}
	lab.Each(t, map[string]row{
		"deleted by operator after refusal":  {true, refuseReleases("AccessDeniedException"), false},
		"deleted by release":                 {true, lab.LoseReply, true},
		"deleted by operator, no reply":      {true, lab.Cut, true},
		"deleted by operator, release keeps": {false, lab.Cut, false},
	}, func(t *testing.T, w *lab.World, tc row) {
		var released []error
		cfg := lab.Config()
		cfg.DeleteOnRelease = tc.deletes
		cfg.OnEvent = func(_ context.Context, e leasehold.Event) {
			if e.Kind == leasehold.EventReleased {
				released = append(released, e.Err)
			}
		}
		_, wire, lock := w.Holding(cfg, leasehold.WithoutRenewal())
		lab.Elapse(time.Minute)
		wire.SetFault(tc.fate)
		_ = lock.Release(t.Context())
		wire.SetFault(nil)
		if w.Item("job") != nil {
			w.Delete("job")
		}
		_ = lock.Release(t.Context())
		if len(released) != 2 || released[0] == nil || errors.Is(released[0], leasehold.ErrLost) || (released[1] == nil) != tc.freed {
			t.Errorf("errors of the released events: %v", released)
		}
	})
}

func TestReleaseOfTakenOverKeyReturnsErrLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.OutageConfig())
		wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }))
		_, _, taken := w.Holding(lab.OutageConfig()) // only the first client is in the outage
		lab.WantErr(t, "lock during the outage", lock.Err(), nil)
		wire.SetFault(lab.Drop)
		lab.WantErr(t, "release without a reply", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		wire.SetFault(nil)
		lab.WantErr(t, "second release", lock.Release(t.Context()), leasehold.ErrLost)
		w.Release(taken)
	})
}

func TestReleaseOutcomeStaysUnknownIfSecondReleaseIsRefused(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"denied": lab.Refused("AccessDeniedException"), "throttled": lab.Refused("ThrottlingException"),
	}, func(t *testing.T, w *lab.World, refused lab.Fault) {
		// With HoldThroughOutage, the client does not report the lock as lost when its lease expires.
		_, wire, lock := w.Holding(lab.OutageConfig())
		wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }))
		lab.Elapse(time.Minute)
		wire.SetFault(lab.Drop)
		lab.WantErr(t, "release without a reply", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		wire.SetFault(refused)
		lab.WantErr(t, "refused release", lock.Release(t.Context()), leasehold.ErrUnknownOutcome)
		wire.SetFault(nil)
		w.Release(lock)
	})
}

func TestReleaseReturnsNilIfKeyIsTakenOverDuringRelease(t *testing.T) {
	lab.Each(t, map[string]bool{
		"no local waiter": false, "local waiter": true,
	}, func(t *testing.T, w *lab.World, waits bool) {
		a, wire := w.Client(lab.Config())
		b, _ := w.Client(lab.Config())
		lock := w.Acquire(a, "job", leasehold.WithoutRenewal())
		var wg sync.WaitGroup
		if waits {
			wg.Go(func() { w.Release(w.Acquire(a, "job")) })
		}
		foreign := make(chan *leasehold.Lock)
		go func() { l := w.Acquire(b, "job"); wire.SetFault(nil); foreign <- l }()
		lab.Elapse(15 * time.Second)
		// From now on, the network loses all requests of client a. The lease of client a
		// expires, and client b takes the key over. Only then does the network deliver
		// requests of client a again.
		wire.SetFault(lab.Cut)
		lab.WantErr(t, "release", lock.Release(t.Context()), nil)
		w.Release(<-foreign)
		wg.Wait()
	})
}

// Once the session of a lock is lost, another client may be granted the key while a release
// is in flight. So the grant of another client does not prove that the release was applied.
func TestReleaseReturnsErrLostIfSessionIsLost(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.SharedConfig())
		var taken atomic.Bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Releases() && !taken.Load() {
				return lab.Cut(r)
			}
			return r.Send()
		})
		go func() {
			lab.Elapse(time.Millisecond)
			w.Delete(w.Sessions()[0]) // deletes the session's row, as an operator might do by hand
			lab.Elapse(10 * time.Second)
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x")})
			taken.Store(true)
		}()
		lab.WantErr(t, "release", lock.Release(t.Context()), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestSecondReleaseDoesNotReleaseNextGrantOfKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		granted := w.Queue(c, "job")
		var handOver func() (*http.Response, error)
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case !r.Grants():
				return r.Send()
			case handOver == nil: // the hand-over is delayed until the next grant is sent
				handOver = r.Send
				return lab.Cut(r)
			}
			// This request is the grant that the next goroutine sends for itself. The network
			// delivers the delayed hand-over first, so the grant is rejected. The rejection does not
			// contain the record.
			wire.SetFault(nil)
			_, _ = handOver()
			return lab.Refusal(400, "ConditionalCheckFailedException"), nil
		})
		lab.WantErr(t, "first release", lock.Release(w.Ended()), leasehold.ErrUnknownOutcome)
		next := <-granted
		lab.WantErr(t, "second release", lock.Release(t.Context()), nil)
		lab.Want(t, "next grant was ended by the second release", w.IsReleased("job"), false)
		w.Release(next)
	})
}

// A renewal is applied to a record with damaged data, so the lock is lost. But the record still
// shows the lock's grant. While a shared lease is renewed, no other client can free the key.
func TestReleaseFreesKeyThatWasLostBecauseRecordIsDamaged(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		_, _, lock := w.Holding(cfg)
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		lab.WantErr(t, "renew", lock.Renew(t.Context()), leasehold.ErrLost)
		lab.WantErr(t, "release", lock.Release(t.Context()), leasehold.ErrLost)
		w.WantReleased("job")
	})
}
