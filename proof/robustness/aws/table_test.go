package aws

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/table"
)

// eachHeld runs a test with a held lock, once for each of the two ways to renew locks.
func eachHeld(t *testing.T, test func(t *testing.T, s *scene, lock *leasehold.Lock)) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, config leasehold.Config) {
		s := newIdleScene(t, w, config)
		test(t, s, w.Acquire(s.c, "job"))
	})
}

// The test deletes the lock table, so the holder's renewals fail. It creates the table again only
// after the lock is lost. Then both clients must be able to acquire the key.
func TestLockIsLostOnlyAtEndOfTrustIfTableIsDeleted(t *testing.T) {
	eachHeld(t, func(t *testing.T, s *scene, lock *leasehold.Lock) {
		lab.Elapse(7500 * time.Millisecond)
		drop(t, s)
		until := lock.TrustedUntil()
		lab.WantErr(t, "without a table", lab.ErrorOf(s.other.Acquire(t.Context(), "job")), leasehold.ErrTableNotFound)
		lab.Elapse(time.Until(until) - time.Millisecond)
		lab.WantErr(t, "before the end of trust", lock.Err(), nil)
		lab.Want(t, "trusted until the same time", lock.TrustedUntil().Equal(until), true)
		lab.Elapse(2 * time.Millisecond)
		wantLost(t, lock, leasehold.LostExpired)
		lab.WantAs[*types.ResourceNotFoundException](t, "the lock", lock.Err())
		lab.WantText(t, "the lock", lock.Err(), "leasehold table create")
		create(t, s)
		for _, c := range []*leasehold.Client{s.c, s.other} {
			s.Release(s.Acquire(c, "job"))
		}
	})
}

// The test deletes the lock table and creates it again before the next renewal. The renewal finds
// no record in the new table, so the holder treats its lock as broken.
func TestHolderDetectsReplacedTableAtNextRenewal(t *testing.T) {
	eachHeld(t, func(t *testing.T, s *scene, lock *leasehold.Lock) {
		lab.Elapse(time.Second)
		drop(t, s)
		create(t, s)
		lab.Elapse(6 * time.Second) // wait for at least one renewal period, including its random variation
		wantLost(t, lock, leasehold.LostBroken)
		if again := s.Acquire(s.c, "job"); again.Token() <= lock.Token() {
			t.Errorf("token %d, after %d", again.Token(), lock.Token())
		}
	})
}

func wantLost(t *testing.T, lock *leasehold.Lock, reason leasehold.LostReason) {
	t.Helper()
	var lost *leasehold.LostError
	if err := lock.Err(); !errors.As(err, &lost) || lost.Reason != reason {
		t.Errorf("want a loss of the kind %q, got %v", reason, err)
	}
}

func drop(t *testing.T, s *scene) {
	t.Helper()
	lab.Must(s.Engine.Client().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: sdk.String("locks")}))(t)
}

func create(t *testing.T, s *scene) {
	t.Helper()
	lab.OK(t, table.Create(t.Context(), s.Engine.Client(), table.Spec{Name: "locks"}))
}

// clocked is a DynamoDB server with its own clock. It refuses a request whose signature
// time differs too much from this clock. Each answer contains the time of this clock.
type clocked struct {
	wire  *lab.Wire
	ahead atomic.Int64 // how far DynamoDB's clock is ahead of this machine's, in nanoseconds
}

func (c *clocked) Do(r *http.Request) (*http.Response, error) {
	const written = "20060102T150405Z"
	now := time.Now().UTC().Add(time.Duration(c.ahead.Load()))
	signed, err := time.Parse(written, r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	var res *http.Response
	switch window := 5 * time.Minute; {
	case now.Sub(signed) > window:
		res = reply(400, service+"InvalidSignatureException", fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			signed.Format(written), now.Add(-window).Format(written), now.Format(written)))
	case signed.Sub(now) > window:
		res = reply(400, service+"InvalidSignatureException", fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			signed.Format(written), now.Add(window).Format(written), now.Format(written)))
	default:
		if res, err = c.wire.Do(r); err != nil {
			return nil, err
		}
	}
	res.Header.Set("Date", now.Format(http.TimeFormat))
	return res, nil
}

func TestCallsSucceedDespiteWrongSystemClock(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Minute, -20 * time.Minute, 72 * time.Hour} {
		for _, op := range operations {
			t.Run(fmt.Sprint(ahead, " ", op.name), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					server := &clocked{}
					s := newSceneOver(t, w, lab.Config(), func(wire *lab.Wire) dynamodb.HTTPClient {
						server.wire = wire
						return server
					})
					server.ahead.Store(int64(ahead)) // from now on, the server's clock differs from the clock of this machine
					lab.OK(t, op.do(w.Within(patience), s))
					lab.Elapse(25 * time.Second)
					for _, held := range s.c.Held() {
						lab.WantErr(t, "a held lock", held.Err(), nil)
					}
					_ = s.c.Close(t.Context())
					_ = s.other.Close(t.Context())
				})
			})
		}
	}
}

func TestFirstAcquireOfClientSucceedsDespiteWrongClock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		server := &clocked{wire: w.Wire()}
		server.ahead.Store(int64(time.Hour))
		c := w.ClientOf(w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient = server }), lab.Config())
		lock := lab.Must(c.TryAcquire(t.Context(), "job"))(t)
		w.Release(lock)
	})
}
