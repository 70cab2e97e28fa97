package leasehold

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// ownRow is one grant of one row of the table while this client has it: the
// record of a lock, or the row of a session. For how long it is trusted is its
// lease's to say, for which it spells the renewals and reads their records.
type ownRow struct {
	c     *Client
	key   Key
	owner string
	grant string
	token int64
	ctx   context.Context // the caller's values, without its end
	proto protocol.Protocol
	lease *lease.Lease
}

// newOwnRow is the grant that record shows. Its lease is still to be set.
func (c *Client) newOwnRow(ctx context.Context, key Key, proto protocol.Protocol, record protocol.Record) ownRow {
	return ownRow{
		c: c, key: key, owner: record.Owner, grant: record.Grant, token: record.Token,
		ctx: context.WithoutCancel(ctx), proto: proto,
	}
}

// Lease is the lease of the row.
func (r *ownRow) Lease() *lease.Lease { return r.lease }

// ended returns why trust ended, nil while it lasts.
func (r *ownRow) ended() error { return r.lease.Ended() }

// currentRecord is the record as of the last write known to have been applied.
func (r *ownRow) currentRecord() Record { return recordOf(r.lease.Record()) }

// asHeld names the grant for a condition.
func (r *ownRow) asHeld() protocol.Hold { return r.named(r.lease.Versions()) }

// named is asHeld of a record that shows one of versions.
func (r *ownRow) named(versions []string) protocol.Hold {
	return protocol.Hold{Key: protocol.Key(r.key), Owner: r.owner, Grants: []string{r.grant}, Token: r.token, Versions: versions}
}

// decode reads an item as the record of this grant.
func (r *ownRow) decode(item protocol.Item) (Record, error) {
	record, err := r.Decode(item)
	if err != nil {
		return Record{}, err
	}
	return recordOf(record), nil
}

// narrow returns those of versions that the next condition still has to name, besides
// those of tried, from which it drops the others: none, unless they are too many for a
// condition. Then a read shows which are settled. It gives up when limit ends, or at
// until.
func (r *ownRow) narrow(ctx, limit context.Context, versions []string, tried *attempts.Sequence[attempt], until decide.Instant) (left []string, reads int, err error) {
	all := slices.Concat(versions, tried.Versions())
	if len(all) <= attempts.MostUnanswered {
		return versions, 0, nil
	}
	var shown Record
	err = r.c.requests.Repeat(limit, func() error {
		reads++
		item, err := r.c.requests.Read(ctx, protocol.Key(r.key))
		if record, damaged := r.decode(item); item != nil && damaged == nil {
			shown = record
		}
		return err
	}, func(failed *attempts.Failure) error {
		if r.c.now().Past(until) {
			return failed
		}
		return nil
	})
	if f := attempts.FailureOf(err); f != nil {
		return nil, reads, f.Err
	}
	named := decide.StillToName(all, shown.Version, attempts.MostUnanswered)
	settled := func(version string) bool { return !slices.Contains(named, version) }
	for _, version := range tried.Versions() {
		if settled(version) {
			tried.Drop(version)
		}
	}
	return slices.DeleteFunc(slices.Clone(versions), settled), reads, nil
}

func (r *ownRow) guard() types.TransactWriteItem {
	return r.proto.Guard(protocol.Hold{
		Key: protocol.Key(r.key), Owner: r.owner, Grants: []string{r.grant}, Token: r.token,
	}).TransactItem(r.c.cfg.Table)
}

// isIn reports whether item, or a key, is the row. Two spellings of one number
// are left to DynamoDB, which refuses a second operation on one item.
func (r *ownRow) isIn(table *string, item protocol.Item) bool {
	if !sameTable(aws.ToString(table), r.c.cfg.Table) {
		return false
	}
	own, err := r.c.proto.Key(protocol.Key(r.key))
	if err != nil {
		return false
	}
	schema := r.c.proto.Schema()
	for name := range own {
		if _, ok := item[name]; !ok {
			return false
		}
	}
	return schema.KeyOf(item) == schema.KeyOf(own)
}

// gone says how a record shows that the grant has ended, "" if it stands. A
// nil item is none.
func (r *ownRow) gone(item protocol.Item) (reason LostReason, by *Record, damage error) {
	if item == nil {
		return LostBroken, nil, nil
	}
	shown, err := r.decode(item)
	if err != nil {
		return LostBroken, nil, err
	}
	freed := shown.Released && shown.Grant == ""  // by a peer, or in a layout whose free records name nobody
	named := !shown.Released || shown.Owner != "" // the row of a read/write lock names no writer that has left
	switch {
	case !freed && (shown.Grant != r.grant || named && shown.Owner != r.owner):
		return LostReplaced, &shown, nil
	case shown.Released || shown.Token != r.token: // or broken, and granted again by a late duplicate of its request
		return LostBroken, &shown, nil
	}
	return "", &shown, nil
}

// lossBy says how the lease was lost.
func (r *ownRow) lossBy(loss lease.Loss) *LostError {
	switch loss.Reason {
	case lease.Paused:
		return r.lostError(LostPaused, nil, loss.Err)
	case lease.Unreadable:
		return r.lostError(LostReplaced, nil, loss.Err)
	case lease.Gone:
		return r.lossShown(loss.Item, nil)
	}
	return r.lostError(LostExpired, nil, loss.Err)
}

// lossShown says how the grant was lost that a record does not show any more, or
// not under a version of ours. err is what else there is to say.
func (r *ownRow) lossShown(item protocol.Item, err error) *LostError {
	reason, by, damage := r.gone(item)
	if reason == "" { // somebody else renews under our grant: it was resumed elsewhere
		reason = LostReplaced
	}
	return r.lostError(reason, by, joined(damage, err))
}

// lostError says that the grant is lost since now, or since its trust ran out.
func (r *ownRow) lostError(reason LostReason, by *Record, err error) *LostError {
	return &LostError{Table: r.c.cfg.Table, Key: r.key, Token: r.token, Reason: reason, By: by, Err: err,
		At: r.c.wall().Add(min(r.lease.Remaining(), 0)).Round(0)}
}

// Renewal spells attempt a of a renewal.
func (r *ownRow) Renewal(a lease.Attempt, versions []string, ch protocol.Changes) *protocol.Write {
	return r.proto.Renew(r.named(versions), protocol.Renewal{Version: a.Version, Lease: a.Lease, Now: r.c.wall(), Changes: ch})
}

// Decode reads an item as the record of this grant.
func (r *ownRow) Decode(item protocol.Item) (protocol.Record, error) {
	record, err := r.proto.Decode(item)
	if err != nil {
		return record, r.c.recordError(r.key, item, err)
	}
	return record, nil
}

// Stands reports whether an item shows that the grant stands.
func (r *ownRow) Stands(item protocol.Item) bool {
	reason, _, _ := r.gone(item)
	return reason == ""
}

// Renewed tells of a renewal.
func (r *ownRow) Renewed(report lease.Report) {
	r.c.failing.over(r)
	r.c.emit(r.ctx, Event{Kind: EventRenewed, Key: r.key, Token: r.token, Took: report.Took, Requests: report.Requests})
}

// Failed tells of an attempt to renew that was not applied, or had no answer.
func (r *ownRow) Failed(report lease.Report) {
	r.c.failing.add(r, report.Err)
	if report.Throttled {
		r.c.throttled(r.ctx, r.key, r.token)(report.Err)
	}
	r.c.emit(r.ctx, Event{Kind: EventRenewError, Key: r.key, Token: r.token, Took: report.Took, Remaining: report.Remaining,
		Requests: report.Requests, Err: opError("renew", r.c.cfg.Table, r.key, report.Err)})
}

// sameTable compares two names of tables, each of which may be an ARN. A name
// is taken to be of the same account and region.
func sameTable(a, b string) bool {
	if strings.HasPrefix(a, "arn:") && strings.HasPrefix(b, "arn:") {
		return a == b
	}
	return tableName(a) == tableName(b)
}

func tableName(s string) string {
	if _, name, ok := strings.Cut(s, ":table/"); ok { // of an ARN: no name has a colon
		return name
	}
	return s
}
