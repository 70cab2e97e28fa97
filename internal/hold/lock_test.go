package hold_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// Callers may check for a *LostError by a type assertion, because the documentation promises
// this type. So no method may return an error that wraps it.
func TestLossIsReturnedAsUnwrappedLostError(t *testing.T) {
	isLostError := func(t *testing.T, what string, err error) {
		t.Helper()
		if _, ok := err.(*leasehold.LostError); !ok { // no errors.As here: err itself must have the type
			t.Errorf("%s: %T: %v", what, err, err)
		}
	}
	lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
		losses := lab.Events(&cfg, leasehold.EventLost)
		c, wire := w.Client(cfg)
		broken, expired := w.Acquire(c, "broken"), w.Acquire(c, "expired")
		w.Break(c, broken, "")
		isLostError(t, "commit", broken.Commit(t.Context(), nil))
		isLostError(t, "release after the commit", broken.Release(t.Context()))
		wire.SetFault(lab.Cut)
		lab.Elapse(time.Minute)
		wire.SetFault(nil)
		for _, lock := range []*leasehold.Lock{broken, expired} {
			isLostError(t, "cause", context.Cause(lock.Context()))
			isLostError(t, "Err", lock.Err())
			isLostError(t, "renew", lock.Renew(t.Context()))
		}
		_ = c.Close(t.Context())
		lab.Want(t, "losses reported", len(losses()), 2)
		for _, e := range losses() {
			isLostError(t, "event", e.Err)
		}
	})
}

func TestLostReasonDistinguishesReplacedFromBrokenLocks(t *testing.T) {
	type row struct {
		happens func(w *lab.World)
		reason  leasehold.LostReason
	}
	lab.Each(t, map[string]row{
		"replaced": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x"), "ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"resumed elsewhere": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x")})
		}, leasehold.LostReplaced},
		"broken": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "isReleased": lab.Str("1")})
		}, leasehold.LostBroken},
		// An operator has marked the record as released by hand, without a new version.
		"marked released": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"isReleased": lab.Str("1")})
		}, leasehold.LostBroken},
		"owner changed": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa")})
		}, leasehold.LostReplaced},
		"owner changed, released": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"ownerName": lab.Str("test/aaaaaaaaaaaaaaaaaaaaaaaaaa"), "isReleased": lab.Str("1")})
		}, leasehold.LostReplaced},
		"another grant": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"grantId": lab.Str("x")})
		}, leasehold.LostReplaced},
		"another grant, released": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("x"), "grantId": lab.Str("x"), "isReleased": lab.Str("1")})
		}, leasehold.LostReplaced},
		"deleted": {func(w *lab.World) { w.Delete("job") }, leasehold.LostBroken},
		"damaged": {func(w *lab.World) {
			w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": nil})
		}, leasehold.LostBroken},
	}, func(t *testing.T, w *lab.World, tc row) {
		cfg := lab.Config()
		losses := lab.Events(&cfg, leasehold.EventLost)
		_, wire, lock := w.Holding(cfg)
		tc.happens(w)
		before := w.Item("job")
		lab.Elapse(6 * time.Second)
		lab.Want(t, "reason", reasonOf(lock.Err()), tc.reason)
		lab.Want(t, "losses reported", len(losses()), 1)
		wire.Sent()
		lab.WantErr(t, "release", lock.Release(t.Context()), leasehold.ErrLost)
		lab.Want(t, "requests for the release of a lost lock", len(wire.Sent()), 0)
		if after := w.Item("job"); len(after) != len(before) || lab.Text(after, "recordVersionNumber") != lab.Text(before, "recordVersionNumber") {
			t.Errorf("the release changed the record to %v", after)
		}
	})
}

// Close releases a lock while another call on the lock waits. That call must return ErrClosed.
func TestCallInterruptedByCloseReturnsErrClosed(t *testing.T) {
	renewsJob := func(c lab.Call) bool { return c.Renews() && slices.Contains(c.Keys(), "job") }
	for name, tc := range map[string]struct {
		throttled func(lab.Call) bool
		call      func(ctx context.Context, lock *leasehold.Lock) error
	}{
		"commit":             {lab.Call.Commits, func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, noted("1")) }},
		"commit and release": {lab.Call.Commits, func(ctx context.Context, l *leasehold.Lock) error { return l.CommitAndRelease(ctx, noted("1")) }},
		"renewal":            {renewsJob, func(ctx context.Context, l *leasehold.Lock) error { return l.Renew(ctx) }},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Each(t, lab.Leases(), func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				c, wire, lock := w.Work().Holding(cfg)
				wire.SetFault(lab.On(tc.throttled, lab.Throttled))
				ended := lab.Go(func() error { return tc.call(context.Background(), lock) })
				lab.Elapse(time.Second)
				lab.WantErr(t, "close", c.Close(t.Context()), nil)
				if err := <-ended; !errors.Is(err, leasehold.ErrClosed) || errors.Is(err, leasehold.ErrReleased) || reasonOf(err) != "" {
					t.Errorf("error %v, Err of the lock: %v", err, lock.Err())
				}
				if !w.IsReleased("job") && (!cfg.SharedLease || name == "commit and release") {
					t.Error("the key is not free")
				}
				w.WantLog()
			})
		})
	}
}

// held is a lock or a group, with the methods that both have.
type held interface {
	Commit(context.Context, []types.TransactWriteItem) error
	CommitAndRelease(context.Context, []types.TransactWriteItem, ...leasehold.ReleaseOption) error
	Release(context.Context, ...leasehold.ReleaseOption) error
}

// lockOrGroup has functions that acquire the lock "job", or a group of "job" and "other".
var lockOrGroup = map[string]func(w *lab.World, c *leasehold.Client) held{
	"a lock":  func(w *lab.World, c *leasehold.Client) held { return w.Acquire(c, "job") },
	"a group": func(w *lab.World, c *leasehold.Client) held { return w.AcquireAll(c, leasehold.Keys("job", "other")) },
}

// noted returns the write of a commit. It appends value to the list in item "a".
func noted(value string) []types.TransactWriteItem { return lab.Writes(lab.Note("a", value)) }

// reentrant acquires keys with Reentrant, under the context of lock.
func reentrant(w *lab.World, c *leasehold.Client, lock *leasehold.Lock, keys ...string) *leasehold.Group {
	w.T.Helper()
	return lab.Must(c.AcquireAll(lock.Context(), leasehold.Keys(keys...), leasehold.Reentrant()))(w.T)
}

// lostIn returns the LostError in err, or an empty LostError if err has none.
func lostIn(err error) *leasehold.LostError {
	lost := &leasehold.LostError{}
	errors.As(err, &lost)
	return lost
}

// reasonOf returns the reason of the LostError in err, or "" if err has none.
func reasonOf(err error) leasehold.LostReason { return lostIn(err).Reason }

// mayLeave starts a goroutine that calls Acquire for the held key "job". It returns when the
// goroutine waits for the key. The function "leave" cancels the goroutine's context. The channel
// "left" receives the error of Acquire.
func mayLeave(w *lab.World, c *leasehold.Client, opts ...leasehold.AcquireOption) (leave func(), left <-chan error) {
	ctx, leave := context.WithCancel(w.T.Context())
	ended := make(chan error, 1)
	go func() { ended <- lab.ErrorOf(c.Acquire(ctx, "job", opts...)) }()
	synctest.Wait()
	return leave, ended
}

// inFlight counts requests in flight.
type inFlight struct {
	mu        sync.Mutex
	now, most int // now: requests in flight; most: the largest number at one time
}

// enter counts one more request in flight. The request counts until leave is called.
func (f *inFlight) enter() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now++
	f.most = max(f.most, f.now)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now--
	}
}

// wantData fails the test unless the record of "job" has data and no TTL. Without a TTL,
// DynamoDB never deletes the record.
func wantData(w *lab.World) {
	w.T.Helper()
	if item := w.Item("job"); item["data"] == nil || item["expiresAt"] != nil {
		w.T.Errorf("the record expires, or has no data: %v", item)
	}
}

// refuseReleases is a fault that answers every release with the given error code.
func refuseReleases(code string) lab.Fault { return lab.On(lab.Call.Releases, lab.Refused(code)) }

// isUpdate reports whether the request is an UpdateItem.
func isUpdate(c lab.Call) bool { return c.Op == "UpdateItem" }

// allOrOne has functions that choose what a test calls Commit on: the whole group, or its first
// lock.
var allOrOne = map[string]func(g *leasehold.Group) held{
	"group":             func(g *leasehold.Group) held { return g },
	"one lock of group": func(g *leasehold.Group) held { return g.Locks()[0] },
}
