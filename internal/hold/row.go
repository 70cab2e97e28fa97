package hold

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// row is a grant stored in one row of the table: the record of a lock, or the row of a session. Its
// lease decides how long the grant is trusted. A row makes the writes of its renewals, and decodes
// their replies.
type row struct {
	c     *Holds
	key   protocol.Key
	owner string
	grant string
	token int64
	ctx   context.Context // context of the call that made the grant, without its cancellation
	proto protocol.Protocol
	lease *lease.Lease
}

// newRow returns the row of the grant in the given record. The caller of newRow must set the
// row's lease.
func (c *Holds) newRow(ctx context.Context, key protocol.Key, proto protocol.Protocol, record protocol.Record) row {
	ctx = context.WithoutCancel(ctx)
	return row{c: c, key: key, owner: record.Owner, grant: record.Grant, token: record.Token, ctx: ctx, proto: proto}
}

// Lease returns the lease of the row.
func (r *row) Lease() *lease.Lease { return r.lease }

// asHeld returns the grant for use in a condition. It contains all versions that the record
// may have.
func (r *row) asHeld() protocol.Hold { return r.named(r.lease.Versions()) }

// named returns the grant for use in a condition that accepts the given versions.
func (r *row) named(versions []string) protocol.Hold {
	return protocol.Hold{Key: r.key, Owner: r.owner, Grants: []string{r.grant}, Token: r.token, Versions: versions}
}

// narrow reads the record if there are more than MostUnanswered versions. It removes from tried and
// *versions the attempts that can no longer be applied. It repeats failed reads until limit is
// done, or the time "until" has passed. It returns the number of reads.
func (r *row) narrow(
	ctx, limit context.Context, versions *[]string, tried *attempts.Sequence[releaseAttempt], until decide.Instant,
) (reads int, err error) {
	all := slices.Concat(*versions, tried.Versions())
	if len(all) <= attempts.MostUnanswered {
		return 0, nil
	}
	var shown protocol.Record
	err = r.c.Requests.Repeat(limit, func() error {
		reads++
		item, err := r.c.Requests.Read(ctx, r.key)
		if record, damaged := r.Decode(item); damaged == nil { // a missing item counts as damaged
			shown = record
		}
		return err
	}, func(failed *attempts.Failure) error {
		if r.c.Now().Past(until) {
			return failed
		}
		return nil
	})
	if err != nil {
		return reads, err
	}
	named := decide.StillToName(all, shown.Version, attempts.MostUnanswered)
	settled := func(version string) bool { return !slices.Contains(named, version) }
	for _, version := range tried.Versions() {
		if settled(version) {
			tried.Drop(version)
		}
	}
	*versions = slices.DeleteFunc(slices.Clone(*versions), settled)
	return reads, nil
}

// send sends attempts to free the row, or to renew its grant for Resume. If "once" is true, it
// sends only one. Otherwise it repeats them until one is answered, limit is done, or the time
// "until" has passed. The result "reads" counts the requests of narrow.
func (r *row) send(
	ctx, limit context.Context, versions *[]string, tried *attempts.Sequence[releaseAttempt],
	op attempts.Operation[releaseAttempt], once bool, until decide.Instant,
) (result attempts.Result[releaseAttempt], reads int) {
	reads, err := r.narrow(ctx, limit, versions, tried, until)
	if failed := attempts.FailureOf(err); failed != nil {
		return attempts.Result[releaseAttempt]{Outcome: attempts.Unanswered, Cause: failed.Cause, Err: failed.Err}, reads
	}
	sent, wait := false, op.BeforeSend
	op.Key, op.Throttled = r.key, r.throttled
	op.BeforeSend = func() (func(), error) {
		if sent && r.c.Now().Past(until) {
			return nil, errOfNoUse
		}
		sent = true
		if wait == nil {
			return func() {}, nil
		}
		return wait()
	}
	if once {
		return tried.Try(ctx, r.c.Requests, op), reads
	}
	return tried.Run(ctx, limit, r.c.Requests, op), reads
}

// errOfNoUse is the error of a release that had no answer for the duration of a lease. The lock's
// own lease has then expired, so the key is free. Under a session, the key may still be held, and a
// timer repeats the release.
var errOfNoUse = errors.New("no answer for as long as a lease")

func (r *row) get() types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: aws.String(r.c.Table), Key: r.item()}}
}

func (r *row) guard() types.TransactWriteItem {
	return r.proto.Guard(r.named(nil)).TransactItem(r.c.Table) // this condition names no versions, so it is true for every version of the grant
}

// isIn reports whether item is the row. The item may consist of its key only. isIn does not
// recognize another spelling of a number in the key, such as 1.0 for 1. DynamoDB itself refuses a
// transaction with two operations on the row.
func (r *row) isIn(table *string, item protocol.Item) bool {
	schema := r.c.Proto.Schema()
	return sameTable(aws.ToString(table), r.c.Table) &&
		schema.KeyOf(item) == schema.KeyOf(r.item()) // no part of our own key is "", so that an item without a part does not match
}

// item returns the key of the row in the form of an item.
func (r *row) item() protocol.Item {
	item, _ := r.c.Proto.Key(r.key) // cannot fail, as the row was written under this key
	return item
}

// gone returns the reason why the grant has ended, according to the record in item. The reason is
// "" if the grant is current. The item is nil if there is no record.
func (r *row) gone(item protocol.Item) (reason core.Reason, by *protocol.Record, damage error) {
	if item == nil {
		return core.Broken, nil, nil
	}
	shown, err := r.Decode(item)
	if err != nil {
		return core.Broken, nil, err
	}
	freed := shown.Released && shown.Grant == "" // released by another library, or in a layout whose free records have no owner
	switch {
	case !freed && (shown.Grant != r.grant || shown.Owner != r.owner):
		return core.Replaced, &shown, nil
	case shown.Released || shown.Token != r.token: // released; or broken, and then granted anew by a copy of the grant's request that the network delivered late
		return core.Broken, &shown, nil
	}
	return "", &shown, nil
}

// lossOf returns the error of a lock or session whose lease was lost. If this client itself
// has ended the session of a lock, as Close does, lossOf returns the session's error.
func (r *row) lossOf(why lease.Loss) error {
	switch why.Reason {
	case lease.Gone:
		return r.lossShown(why.Item, nil)
	case lease.WithParent:
		if of, lost := core.LossOf(why.Err); lost {
			return r.lostError(of.Reason, nil, of.Err)
		}
		return why.Err
	}
	return r.lostError(why.Reason, nil, why.Err)
}

// lossShown returns the error of a lost lock. The item is the lock's record, which does not show the
// grant, or shows a version that this client did not write. The error also wraps err.
func (r *row) lossShown(item protocol.Item, err error) error {
	reason, by, damage := r.gone(item)
	if reason == "" { // the record shows the grant: another process has resumed and renewed it
		reason = core.Replaced
	}
	return r.lostError(reason, by, attempts.Joined(damage, err))
}

// lostError returns the error of a lost grant. The time of loss in the error is the time when the
// trust expired, or the current time if the trust has not expired.
func (r *row) lostError(reason core.Reason, by *protocol.Record, err error) error {
	return r.c.Lost(core.Loss{Key: r.key, Token: r.token, Reason: reason, By: by, Err: err,
		At: r.c.Wall().Add(min(r.lease.Remaining(), 0)).Round(0)})
}

// Decode decodes an item as the record of this grant.
func (r *row) Decode(item protocol.Item) (protocol.Record, error) {
	return r.c.DecodeBy(r.proto, r.key, item)
}

// sameTable reports whether two names refer to the same table. Each name may be an ARN. A plain
// name counts as a table of the same account and Region.
func sameTable(a, b string) bool {
	if strings.HasPrefix(a, "arn:") && strings.HasPrefix(b, "arn:") {
		return a == b
	}
	name := func(s string) string { return s[strings.LastIndex(s, "/")+1:] } // an ARN ends in "/" and the table's name, which has no slash
	return name(a) == name(b)
}
