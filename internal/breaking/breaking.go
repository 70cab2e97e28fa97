package breaking

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Break is the break of one grant.
type Break struct {
	*core.Env
	Grant     protocol.Record // record that was read, and contained the grant
	Reason    string
	Unrenewed bool // break the grant only if it has not been renewed since Grant was read
}

// Run ends the grant and frees its key. If the grant is under a session, Run also notifies the
// session.
func (b *Break) Run(ctx context.Context) error {
	key := b.Grant.Key
	told := make(chan error, 1)
	var latest attempts.Latest
	latest.Begin(&attempts.Sequence[attempts.Version]{}) // free sends a request even if ctx has ended: before that request, this empty sequence makes the outcome count as unknown
	err := b.Outlive(ctx, "break", key, &latest, func() error {
		maybe, err := b.free(ctx, &latest)
		if maybe || err == nil {
			b.Detach(func() { told <- b.tell(ctx) })
		}
		return err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
		return b.untold(attempts.Cause(ctx))
	}
}

// free sends attempts until one has broken the grant. If the holder has renewed the grant, free
// tries again with the renewed record, unless b.Unrenewed is set. The result "maybe" is true if the
// grant may be broken despite the error.
func (b *Break) free(ctx context.Context, latest *attempts.Latest) (maybe bool, err error) {
	grant, key, at := b.Grant, b.Grant.Key, b.Wall()
	for {
		var tried attempts.Sequence[attempts.Version]
		latest.Begin(&tried)
		res := tried.Run(context.WithoutCancel(ctx), ctx, b.Requests, attempts.Operation[attempts.Version]{
			Key: key,
			Next: func() (attempts.Version, *protocol.Write) {
				end := protocol.Break{
					Version: protocol.NewVersion(), By: b.Owner, At: at, Reason: b.Reason,
					Expires: b.Expires(protocol.Changes{}.LeaveData(grant), grant.Done != nil),
				}
				return attempts.Version(end.Version), b.Proto.Break(grant, end)
			},
			Shows:     b.shows,
			Throttled: func(err error) { b.ReportThrottled(ctx, key, 0, err) },
		})
		switch res.Outcome {
		case attempts.Applied:
			return false, nil
		case attempts.Unanswered:
			return true, b.UnknownOutcome("break", key, errors.Join(attempts.Cause(ctx), res.Err))
		case attempts.Rejected:
		default:
			return false, b.Errors.Failed("break", key, errors.Join(attempts.Cause(ctx), res.Err))
		}
		found, gone, err := b.found(grant, res.Item)
		switch {
		case gone && tried.Silent(): // an earlier attempt that got no reply may have freed the key
			return true, b.UnknownOutcome("break", key, err)
		case err != nil:
			return false, err
		case b.Unrenewed || ctx.Err() != nil:
			return false, b.Errors.Changed(found)
		}
		grant = found // the next attempt is conditional on the current version, and the current data determines the record's TTL
	}
}

// shows returns the attempt that has freed the key: its version is in the record. In some layouts,
// a free key has no record or no version. Then shows assumes success if an earlier attempt had no
// answer.
func (b *Break) shows(item protocol.Item, sent []attempts.Version) (attempts.Version, bool) {
	last, unanswered := sent[len(sent)-1], len(sent) > 1
	if item == nil {
		return last, unanswered && !b.Caps.KeepOnRelease
	}
	now, err := b.Proto.Decode(item)
	if err != nil || !now.Released {
		return last, false
	}
	if a, ok := attempts.Find(sent, now.Version); ok {
		return a, true
	}
	return last, unanswered && now.Version == ""
}

// found decodes the item with which DynamoDB rejected a break. If the grant was only renewed, it
// returns the record. Otherwise it returns an error: "gone" is true if the record no longer shows
// the grant, and false if the item cannot be decoded.
func (b *Break) found(grant protocol.Record, item protocol.Item) (now protocol.Record, gone bool, err error) {
	if item == nil {
		return now, true, b.Errors.Missing(grant.Key)
	}
	if now, err = b.Decode(grant.Key, item); err != nil {
		return now, false, err
	}
	// A renewal keeps the grant id and the owner. A grant without an id, from another library, is
	// compared by its owner. It counts as changed if it has no owner, or if the layout has an expiry
	// time (layout.WallClock): the libraries of such layouts never renew.
	sameIfEqual := grant.Grant != "" || grant.Owner != "" && b.Caps.Expiry == layout.Observed
	if now.Released || !sameIfEqual || now.Grant != grant.Grant || now.Owner != grant.Owner {
		return now, true, b.Errors.Changed(now)
	}
	return now, false, nil
}

// ErrHolderUntold is returned when a grant was broken, but the session of its holder could
// not be notified.
var ErrHolderUntold = errors.New("leasehold: holder not told of the break")

// untold returns an error that wraps ErrHolderUntold and the reason err.
func (b *Break) untold(err error) error {
	return b.Errors.Failed("break", b.Grant.Key, fmt.Errorf(
		"%w: the key is free, and a live holder learns of it within twenty minutes; its commits fail at once: %w", ErrHolderUntold, err))
}

// tell notifies the grant's session that the grant was broken, or may have been broken. It does
// nothing if the grant has no session. It sends at least one request, and repeats a failed request
// until limit is cancelled.
func (b *Break) tell(limit context.Context) error {
	proto, r := b.Native, b.Grant
	// To another layout, the attribute "session" of layout Native is an attribute of the caller.
	if id, ok := r.Attributes["session"].(*types.AttributeValueMemberS); proto == nil && ok && id.Value == protocol.ClientID(r.Owner) {
		return b.untold(errors.New("only a client of layout Native can notify it"))
	}
	if proto == nil || r.Session == "" {
		return nil
	}
	word, ctx := protocol.NewVersion(), context.WithoutCancel(limit)
	err := b.Requests.Repeat(limit, func() error {
		reply := b.Requests.Write(ctx, proto.TellBroken(r.Session, word, r.Grant), attempts.Limit)
		switch {
		case reply.Effect == decide.Applied:
			return nil
		case reply.Cause != decide.ConditionFailed:
			return &attempts.Failure{Cause: reply.Cause, Err: reply.Err}
		}
		row, key := reply.Item, proto.SessionKey(r.Session)
		if row == nil { // the row is missing, or the reply does not contain it
			var err error
			if row, err = b.Requests.Read(ctx, key); err != nil {
				return err
			}
		}
		return b.whyNot(key, row)
	}, func(f *attempts.Failure) error {
		if f.Cause == decide.Busy {
			b.ReportThrottled(ctx, r.Key, r.Token, f.Err)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	return b.untold(errors.Join(attempts.Cause(limit), err))
}

// whyNot returns the reason why the row of a session did not accept the notice of a break. It
// returns nil if the session has ended: its locks have ended too, so its client needs no notice.
func (b *Break) whyNot(key protocol.Key, row protocol.Item) error {
	if row == nil {
		return nil
	}
	shown, err := b.DecodeBy(b.Native.Session(), key, row)
	switch {
	case err != nil:
		return err
	case shown.Released:
		return nil
	}
	return errors.New("its client's version does not read break notices")
}
