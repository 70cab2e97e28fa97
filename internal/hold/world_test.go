package hold_test

import (
	"context"
	"errors"
	"sync"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// held is a lock or a group, with the methods that both have.
type held interface {
	Commit(context.Context, []types.TransactWriteItem) error
	CommitAndRelease(context.Context, []types.TransactWriteItem, ...leasehold.ReleaseOption) error
	Release(context.Context, ...leasehold.ReleaseOption) error
}

// lockOrGroup runs a test with the lock "job", and with a group of "job" and "other".
var lockOrGroup = map[string]func(w *lab.World, c *leasehold.Client) held{
	"a lock":  func(w *lab.World, c *leasehold.Client) held { return w.Acquire(c, "job") },
	"a group": func(w *lab.World, c *leasehold.Client) held { return w.AcquireAll(c, leasehold.Keys("job", "other")) },
}

// noted returns the write of a commit. It appends value to the list in item "a".
func noted(value string) []types.TransactWriteItem { return lab.Writes(lab.Note("a", value)) }

// reentrant acquires keys under the context of lock, with Reentrant.
func reentrant(w *lab.World, c *leasehold.Client, lock *leasehold.Lock, keys ...string) *leasehold.Group {
	w.T.Helper()
	return lab.Must(c.AcquireAll(lock.Context(), leasehold.Keys(keys...), leasehold.Reentrant()))(w.T)
}

// reasonOf returns the reason of the LostError in err, or "" if err has none.
func reasonOf(err error) leasehold.LostReason {
	var lost *leasehold.LostError
	if !errors.As(err, &lost) {
		return ""
	}
	return lost.Reason
}

// mayLeave starts a goroutine that waits for the key "job". leave cancels its context. left
// receives the error of its Acquire.
func mayLeave(w *lab.World, c *leasehold.Client, opts ...leasehold.AcquireOption) (leave func(), left <-chan error) {
	ctx, leave := context.WithCancel(w.T.Context())
	ended := make(chan error, 1)
	go func() { ended <- lab.ErrorOf(c.Acquire(ctx, "job", opts...)) }()
	synctest.Wait()
	return leave, ended
}

// inFlight counts the requests that are in flight now, and the largest number at one time.
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

// isUpdate reports whether the request is an UpdateItem, and not a part of a transaction.
func isUpdate(c lab.Call) bool { return c.Op == "UpdateItem" }

// allOrOne returns the group, or its first lock, to commit with.
var allOrOne = map[string]func(g *leasehold.Group) held{
	"of all":         func(g *leasehold.Group) held { return g },
	"of one of them": func(g *leasehold.Group) held { return g.Locks()[0] },
}
