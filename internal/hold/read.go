package hold

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Read reads items in one transaction that sees this grant standing, until ctx ends or the
// trust does.
func (l *Handle) Read(ctx context.Context, gets []types.TransactGetItem) ([]protocol.Item, error) {
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
		return nil, h.c.Errors.Failed("read", h.key, attempts.Cause(ctx))
	}
	var items []protocol.Item
	var ended error
	err = h.c.Requests.Repeat(ctx, func() (err error) {
		items, err = h.readTogether(ctx, all)
		return err
	}, func(f *attempts.Failure) error {
		if f.Cause != decide.Unreachable {
			h.c.ReportThrottled(ctx, h.key, h.token, f.Err)
		}
		ended = l.Err()
		return ended
	})
	switch {
	case ended != nil:
		return nil, ended
	case err != nil:
		return nil, h.c.Errors.Failed("read", h.key, attempts.Joined(attempts.Cause(ctx), err))
	}
	if err := h.stillHeld(items[len(gets):]); err != nil {
		if ended := l.ended(); ended != nil && !errors.Is(ended, core.ErrLost) {
			return nil, ended // the read saw a release of this client's own
		}
		return nil, err
	}
	return items[:len(gets)], nil
}

// besideRows adds the rows that the grant rests on to the items that the caller reads.
func (h *Lock) besideRows(gets []types.TransactGetItem) ([]types.TransactGetItem, error) {
	all := slices.Clip(gets)
	for _, row := range rowsOf([]*Lock{h}) {
		key, err := h.c.Proto.Key(row.key)
		if err != nil {
			return nil, err
		}
		all = append(all, types.TransactGetItem{Get: &types.Get{TableName: aws.String(h.c.Table), Key: key}})
	}
	return all, nil
}

// readTogether reads in one transaction, once. It ends with ctx.
func (h *Lock) readTogether(ctx context.Context, gets []types.TransactGetItem) ([]protocol.Item, error) {
	if h.session != nil {
		defer h.session.turn(ctx)()
	}
	return h.c.Requests.ReadTogether(ctx, gets)
}

// stillHeld ends the trust if the rows read beside no longer show the grant, or its session.
func (h *Lock) stillHeld(items []protocol.Item) error {
	shown := map[*row]protocol.Item{}
	for i, r := range rowsOf([]*Lock{h}) {
		if reason, _, _ := r.gone(items[i]); reason != "" {
			shown[r] = items[i]
		}
	}
	return loseBy(shown, []*Lock{h}, nil, (*Lock).endedOtherwise)[0]
}

func (h *Lock) checkGets(gets []types.TransactGetItem) error {
	rows := len(rowsOf([]*Lock{h}))
	if most := attempts.MaxTransact - rows; len(gets) > most {
		what := "the lock's record"
		if rows > 1 {
			what += " and the row of its shared lease"
		}
		return h.c.Errorf("read", h.key, "%d items: at most %d beside %s: read them in several calls", len(gets), most, what)
	}
	for i, g := range gets {
		switch {
		case g.Get == nil:
			return h.c.Errorf("read", h.key, "item %d has no Get", i)
		case h.isIn(g.Get.TableName, g.Get.Key):
			return h.c.Errorf("read", h.key, "item %d is the lock's own record: Read reads it anyway; see protocol.Record and Data", i)
		case h.session != nil && h.session.isIn(g.Get.TableName, g.Get.Key):
			return h.c.Errorf("read", h.key, "item %d is the row of this client's shared lease: Read reads it anyway", i)
		}
	}
	return nil
}
