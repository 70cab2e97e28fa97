package hold_test

import (
	"context"
	"errors"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// held is what a caller holds: a lock or a group.
type held interface {
	Commit(context.Context, []types.TransactWriteItem) error
	CommitAndRelease(context.Context, []types.TransactWriteItem, ...leasehold.ReleaseOption) error
	Release(context.Context, ...leasehold.ReleaseOption) error
}

// lockOrGroup acquires the key job, alone or in a group with the key other.
var lockOrGroup = map[string]func(w *lab.World, c *leasehold.Client) held{
	"a lock":  func(w *lab.World, c *leasehold.Client) held { return w.Acquire(c, "job") },
	"a group": func(w *lab.World, c *leasehold.Client) held { return w.AcquireAll(c, leasehold.Keys("job", "other")) },
}

// noted returns the write of a commit.
func noted(value string) []types.TransactWriteItem { return lab.Writes(lab.Note("a", value)) }

// reentrant acquires keys again under the grant of a lock.
func reentrant(w *lab.World, c *leasehold.Client, lock *leasehold.Lock, keys ...string) *leasehold.Group {
	w.T.Helper()
	g, err := c.AcquireAll(lock.Context(), leasehold.Keys(keys...), leasehold.Reentrant())
	if err != nil {
		w.T.Fatal(err)
	}
	return g
}

// reasonOf returns the reason of the loss in err, or "" if it reports none.
func reasonOf(err error) leasehold.LostReason {
	var lost *leasehold.LostError
	if !errors.As(err, &lost) {
		return ""
	}
	return lost.Reason
}

// mayLeave makes a goroutine wait for the key job, after those that wait already. leave makes
// it give up. left receives the error of its call.
func mayLeave(w *lab.World, c *leasehold.Client, opts ...leasehold.AcquireOption) (leave func(), left <-chan error) {
	ctx, leave := context.WithCancel(w.T.Context())
	ended := make(chan error, 1)
	go func() { ended <- lab.ErrorOf(c.Acquire(ctx, "job", opts...)) }()
	synctest.Wait()
	return leave, ended
}

// refuseReleases answers every release with an error.
func refuseReleases(code string) lab.Fault { return lab.On(lab.Call.Releases, lab.Refused(code)) }

// isUpdate reports whether the request is an update, and no transaction.
func isUpdate(c lab.Call) bool { return c.Op == "UpdateItem" }

// allOrOne are the parts of a group that a caller commits with.
var allOrOne = map[string]func(g *leasehold.Group) held{
	"of all":         func(g *leasehold.Group) held { return g },
	"of one of them": func(g *leasehold.Group) held { return g.Locks()[0] },
}
