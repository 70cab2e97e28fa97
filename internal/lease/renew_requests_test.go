package lease_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

func TestRetriedRenewalWritesNewRecordVersion(t *testing.T) { // in dynamolock, a retry keeps the version: it extends the holder's own trust, but other clients see no renewal
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.Config())
		seen := map[string]bool{}
		var mu sync.Mutex
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() {
				_, err := r.Send()
				mu.Lock()
				defer mu.Unlock()
				v := lab.Text(w.Item("job"), "recordVersionNumber")
				if seen[v] {
					t.Errorf("version %s was sent twice", v)
				}
				seen[v] = true
				return nil, errors.Join(err, lab.ErrReset)
			}
			return r.Send()
		})
		lab.Elapse(16 * time.Second)
		if len(seen) < 5 {
			t.Errorf("%d attempts", len(seen))
		}
		wire.SetFault(nil)
		_ = lock.Release(t.Context())
	})
}

// wrapped is a DB that calls the function "update" before each UpdateItem, and the function "get"
// before each GetItem. Like a wrapper that a user wrote, these functions may ignore the deadline of
// the request's context.
type wrapped struct {
	machine.DB
	update func() error
	get    func()
}

func (d wrapped) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := d.update(); err != nil {
		return nil, err
	}
	return d.DB.UpdateItem(ctx, in, o...)
}

func (d wrapped) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	d.get()
	return d.DB.GetItem(ctx, in, o...)
}

func TestRenewalIsRepeatedOnlyWhileLeaseIsTrusted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		k := &lab.Jumps{}
		held, paused, renewed := false, false, 0
		c := w.ClientOf(wrapped{
			DB: w.Connect([]lab.Edit{k.Edit}),
			update: func() error {
				switch {
				case !held:
					return nil
				case paused:
					t.Error("renewed after the end of trust")
				}
				renewed++
				return lab.ErrReset
			},
			// Called when the client reads the record to find out whether the renewal was applied.
			get: func() {
				paused = true
				k.Boot.Store(int64(2 * time.Hour)) // the machine was suspended, so no timer has fired
			},
		}, lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		held = true
		lab.WantErr(t, "renew", lock.Renew(t.Context()), leasehold.ErrLost)
		if !paused || renewed == 0 {
			t.Errorf("the record was not read after %d attempts", renewed)
		}
		held = false
		_ = lock.Release(t.Context())
	})
}

func TestHangingRenewalIsRepeatedAfterTwoSeconds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.Config(), leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.Cut))
		began := time.Now()
		lab.WantErr(t, "renew", lock.Renew(t.Context()), nil)
		lab.WantTook(t, "returned after", began, 2*time.Second, 2100*time.Millisecond)
		w.Release(lock)
	})
}

func TestRenewalIsRepeatedImmediatelyAfterTransactionConflict(t *testing.T) {
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		c, wire, lock := w.Holding(cfg)
		var sent []time.Time
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Renews() {
				if sent = append(sent, time.Now()); len(sent) == 1 {
					return lab.Conflict(r.Call), nil
				}
			}
			return r.Send()
		})
		lab.Elapse(6 * time.Second)
		if len(sent) < 2 || !sent[1].Equal(sent[0]) {
			t.Errorf("sent at %v", sent)
		}
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}

func TestRenewalSucceedsEvenAfterHundredFailures(t *testing.T) {
	lab.Each(t, map[string]int{
		"none was applied": 0, "the first was applied": 1, "the thirtieth was applied": 30,
	}, func(t *testing.T, w *lab.World, landed int) {
		_, wire, lock := w.Holding(lab.Config(), leasehold.WithoutRenewal(), leasehold.WithLease(time.Hour))
		n := 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if !r.Renews() {
				return r.Send()
			}
			if n++; n == landed {
				_, _ = r.Send()
			}
			return nil, lab.ErrReset
		})
		lab.WantErr(t, "no answer", lock.Renew(w.Within(2*time.Minute)), leasehold.ErrUnknownOutcome)
		synctest.Wait()
		if n < 110 {
			t.Fatalf("%d attempts", n)
		}
		wire.SetFault(nil)
		lab.WantErr(t, "answered", lock.Renew(t.Context()), nil)
		w.Release(lock)
	})
}
