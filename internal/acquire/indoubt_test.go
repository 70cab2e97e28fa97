package acquire_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// session is a shared lease that is never renewed.
type session struct {
	lease.Holder
	owner string
	lease *lease.Lease
}

func (s *session) Names() (id, owner string) { return protocol.ClientID(s.owner), s.owner }
func (s *session) Lease() *lease.Lease       { return s.lease }
func (s *session) Lost(lease.Loss)           { s.lease.End(errors.New("lost")) }

// beginSession begins a session that is never renewed.
func (c *client) beginSession() acquire.Session {
	leases := &lease.Leases{Env: c.env}
	a := lease.Attempt{Version: protocol.NewVersion(), Sent: c.w.now(), Lease: timing.Lease}
	next := &session{owner: protocol.NewOwner("me")}
	next.lease = leases.New(lease.Terms{Timing: timing, Manual: true}, a, protocol.Record{}, next)
	next.lease.Start()
	return next
}

func TestGrantAttemptUnderEndedSessionIsFreed(t *testing.T) {
	for name, applied := range map[string]int{"the attempt before": 1, "the last attempt": 2} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := w.client("me")
				c.session = c.beginSession
				ctx, leave := context.WithCancel(t.Context())
				c.wire.fate = func(n int, _ string, deliver func()) error {
					if n > 2 { // all requests after the second one try to free the key
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
		})
	}
}

func TestAttemptInDoubtIsTakenOverAtOnceBySameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Grants() {
				_, _ = r.Send()
			}
			return lab.Cut(r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		lab.Elapse(10 * time.Second) // during this time, the write that would undo the attempt does not get through either
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Fatal("no attempt in doubt is there to be taken over")
		}
		wire.SetFault(nil)
		lock, err := c.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if _, took := lock.TookOver(); took {
			t.Error("its own attempt is reported as a dead holder")
		}
		w.Release(lock)
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
		if lab.Text(w.Item("job"), "isReleased") != "1" {
			t.Errorf("left held: %v", w.Item("job"))
		}
	})
}

func TestGrantAppliedAfterReleaseDoesNotBlockSameClient(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job"))
		var late func() (*http.Response, error)
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			late = r.Send
			return nil, lab.ErrReset
		}))
		w.Release(w.Acquire(c, "job"))
		_, _ = late()
		if lab.Text(w.Item("job"), "isReleased") == "1" {
			t.Fatal("the delayed attempt did not land")
		}
		began := time.Now()
		w.Release(w.Acquire(c, "job"))
		if took := time.Since(began); took > time.Second {
			t.Errorf("waited %v for a grant of its own that nobody believes in", took)
		}
	})
}
