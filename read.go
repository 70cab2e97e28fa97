package leasehold

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Read reads items in one transaction that sees this grant standing, and so
// everything that earlier holders committed. At most 99, 98 under
// Config.SharedLease. Items come in the order of gets, nil for one that does not
// exist.
//
// A plain read may show what was before a commit of the former holder that is
// still being carried out; this one cannot. ErrLost if the grant does not
// stand; the lock's context ends as well. Conflicts, throttling and lost
// replies are retried until ctx or the trust ends.
func (l *Lock) Read(ctx context.Context, gets []types.TransactGetItem) ([]map[string]types.AttributeValue, error) {
	h := l.h
	if err := h.checkGets(gets); err != nil {
		return nil, err
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	all, err := h.besideRows(gets)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, opError("read", h.c.cfg.Table, h.key, context.Cause(ctx))
	}
	var items []protocol.Item
	var ended error
	err = h.c.requests.Repeat(ctx, func() (err error) {
		items, err = h.readTogether(ctx, all)
		return err
	}, func(f *attempts.Failure) error {
		if f.Cause != decide.Unreachable {
			h.c.throttled(ctx, h.key, h.token)(f.Err)
		}
		ended = l.Err()
		return ended
	})
	switch {
	case ended != nil:
		return nil, ended
	case err != nil:
		return nil, opError("read", h.c.cfg.Table, h.key, joined(context.Cause(ctx), err))
	}
	if err := h.stillHeld(items[len(gets):]); err != nil {
		return nil, err
	}
	return items[:len(gets)], nil
}

// besideRows adds what the grant rests on to what the caller reads.
func (h *holding) besideRows(gets []types.TransactGetItem) ([]types.TransactGetItem, error) {
	all := slices.Clip(gets)
	for _, row := range rowsOf([]*holding{h}) {
		key, err := h.c.proto.Key(protocol.Key(row.key))
		if err != nil {
			return nil, err
		}
		all = append(all, types.TransactGetItem{Get: &types.Get{TableName: aws.String(h.c.cfg.Table), Key: key}})
	}
	return all, nil
}

// readTogether reads in one transaction, once. It ends with ctx.
func (h *holding) readTogether(ctx context.Context, gets []types.TransactGetItem) ([]protocol.Item, error) {
	if h.session != nil {
		defer h.session.turn(ctx)()
	}
	return h.c.requests.ReadTogether(ctx, gets)
}

// stillHeld ends the trust if the rows read beside do not show the grant, or
// its session, any more.
func (h *holding) stillHeld(items []protocol.Item) error {
	var failed []failedGuard
	for i, row := range rowsOf([]*holding{h}) {
		if reason, _, _ := row.gone(items[i]); reason != "" {
			failed = append(failed, failedGuard{row, items[i]})
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return loseBy(failed, []*holding{h}, nil, (*holding).endedOtherwise)[0]
}

func (h *holding) checkGets(gets []types.TransactGetItem) error {
	rows := len(rowsOf([]*holding{h}))
	if most := attempts.MaxTransact - rows; len(gets) > most {
		what := "the lock's record"
		if rows > 1 {
			what += " and the row of its shared lease"
		}
		return h.c.errorf("read", h.key, "%d items: at most %d beside %s: read them in several calls", len(gets), most, what)
	}
	for i, g := range gets {
		switch {
		case g.Get == nil:
			return h.c.errorf("read", h.key, "item %d has no Get", i)
		case h.isIn(g.Get.TableName, g.Get.Key):
			return h.c.errorf("read", h.key, "item %d is the lock's own record: Read reads it anyway; see Record and Data", i)
		case h.session != nil && h.session.isIn(g.Get.TableName, g.Get.Key):
			return h.c.errorf("read", h.key, "item %d is the row of this client's shared lease: Read reads it anyway", i)
		}
	}
	return nil
}
