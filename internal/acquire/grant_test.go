package acquire_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestNoWaitCallReadsSessionAgainInsteadOfUsingOldRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		row := w.underSession("job")
		c := w.client("me")
		if _, err := c.One(t.Context(), c.want("job", noWait)); !errors.As(err, new(*heldError)) {
			t.Fatalf("its holder lives: %v", err)
		}
		session := w.proto.(protocol.Native).Session()
		r := lab.Must(session.Decode(w.item(row)))(t)
		// This write breaks the session in the same way as the session's own client does when it
		// closes.
		w.write(session.Break(r, protocol.Break{Version: protocol.NewVersion()}))
		c.one("job", noWait)
	})
}

func TestGrantRequestIsAbandonedOnceItsLeaseWouldBeOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Cut))
		began := time.Now()
		lock := w.Acquire(c, "job", leasehold.WithLease(time.Second))
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.Release(lock)
	})
}

func TestGrantRequestIsRepeatedUntilItIsAnswered(t *testing.T) {
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

func TestGrantThatArrivesVeryLateIsReplacedBySameClientAtOnce(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var asked atomic.Int32
		var first *lab.Request
		var mended time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Grants() || !mended.IsZero() {
				return r.Send()
			}
			switch asked.Add(1) {
			case 1:
				first = r
			case 60: // by request 60, the condition of a grant names only newer attempts than the first
				_, _ = first.Send()
				mended = time.Now()
			}
			return nil, lab.ErrReset
		})
		lock := w.Acquire(c, "job")
		if took := time.Since(mended); took > 5*time.Second {
			t.Errorf("acquired %v later", took)
		}
		w.Release(lock)
	})
}

// session is a shared lease without renewals.
type session struct {
	lease.Holder
	owner string
	lease *lease.Lease
}

func (s *session) Names() (id, owner string) { return protocol.ClientID(s.owner), s.owner }
func (s *session) Lease() *lease.Lease       { return s.lease }
func (s *session) Lost(lease.Loss)           { s.lease.End(errors.New("lost")) }

// beginSession returns a shared lease that is never renewed.
func (c *client) beginSession() acquire.Session {
	leases := &lease.Leases{Env: c.env}
	a := lease.Attempt{Version: protocol.NewVersion(), Sent: c.w.now(), Lease: timing.Lease}
	next := &session{owner: protocol.NewOwner("me")}
	next.lease = leases.New(lease.Terms{Timing: timing, Manual: true}, a, protocol.Record{}, next)
	next.lease.Start()
	return next
}

func TestCancelledCallUnderSharedLeaseFreesUnansweredGrant(t *testing.T) {
	eachInWorld(t, map[string]int{"the attempt before": 1, "the last attempt": 2}, func(t *testing.T, w *world, applied int) {
		c := w.client("me")
		c.session = c.beginSession
		ctx, leave := context.WithCancel(t.Context())
		c.wire.fate = func(n int, _ string, deliver func()) error {
			if n > 2 { // the requests after the second one try to free the key, and each is answered
				deliver()
				return nil
			}
			if n == applied {
				deliver()
			}
			if n == 2 {
				leave()
				time.Sleep(time.Millisecond)
			}
			return errReset
		}
		if _, err := c.One(ctx, c.want("job")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		c.left()
		if held := w.owner("job"); held != "" {
			t.Errorf("left to %s", held)
		}
	})
}

func TestGrantWithUnreadableRecordIsReleased(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		w.Update("job", map[string]types.AttributeValue{"data": lab.Str("text")})
		if _, err := c.Acquire(t.Context(), "job"); !errors.As(err, new(*leasehold.RecordError)) {
			t.Fatalf("error %v", err)
		}
		lab.Elapse(5 * time.Second)
		if !w.IsReleased("job") {
			t.Errorf("left held: %v", w.Item("job"))
		}
	})
}

func TestGrantAppliedAfterReleaseDoesNotBlockSameClient(t *testing.T) {
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
			t.Fatal("the delayed attempt did not land")
		}
		began := time.Now()
		w.Release(w.Acquire(c, "a"))
		if took := time.Since(began); took > time.Second {
			t.Errorf("waited %v for a grant of its own that nobody believes in", took)
		}
	})
}
