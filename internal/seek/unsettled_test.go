package seek_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// sessions are shared leases, another one for each grant that is asked for.
type sessions struct{ c *client }

// session is a shared lease that nobody renews.
type session struct {
	lease.Holder
	owner string
	lease *lease.Lease
}

func (s *session) Names() (id, owner string) { return protocol.ClientID(s.owner), s.owner }
func (s *session) Lease() *lease.Lease       { return s.lease }
func (s *session) Lost(lease.Loss)           { s.lease.End(errors.New("lost")) }

func (s sessions) CheckSoon(protocol.Key) {}

func (s sessions) Session(context.Context) (seek.Session, error) {
	leases := &lease.Client{Now: s.c.w.now, Requests: s.c.Requests}
	a := lease.Attempt{Version: protocol.NewVersion(), Sent: s.c.w.now(), Lease: timing.Lease}
	next := &session{owner: protocol.NewOwner("me")}
	next.lease = leases.New(lease.Terms{Timing: timing, Manual: true}, a, protocol.Record{}, next)
	next.lease.Start()
	return next, nil
}

func TestAnAttemptUnderASessionThatHasEndedMeanwhileIsFreedToo(t *testing.T) {
	for name, applied := range map[string]int{"the attempt before": 1, "the last attempt": 2} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := w.client("me")
				c.Sessions = sessions{c}
				ctx, leave := context.WithCancel(t.Context())
				c.wire.fate = func(n int, _ string, deliver func()) error {
					if n > 2 { // they free the key
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
