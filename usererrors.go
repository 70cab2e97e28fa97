package leasehold

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// userErrors makes the errors that users are told, and whose types they know, of what
// happens inside: what is held, what is sought and what is broken.
type userErrors struct{ c *Client }

func (e userErrors) Failed(op string, key protocol.Key, err error) error {
	return opError(op, e.c.cfg.Table, Key(key), err)
}

func (e userErrors) Unreadable(key protocol.Key, item protocol.Item, err error) error {
	return e.c.recordError(Key(key), item, err)
}

func (e userErrors) Missing(key protocol.Key) error {
	return fmt.Errorf("%w: %v in table %s", ErrNotFound, Key(key), e.c.cfg.Table)
}

func (e userErrors) Held(key protocol.Key, holder protocol.Record, others int, why error) error {
	return &HeldError{Table: e.c.cfg.Table, Key: Key(key), Holder: recordOf(holder).clone(), Err: why, others: others}
}

func (e userErrors) Ended(key protocol.Key, why error) error {
	return e.c.errorf("acquire", Key(key), "%w", why)
}

func (e userErrors) Done(key protocol.Key, done protocol.Done) error {
	return &DoneError{Table: e.c.cfg.Table, Key: Key(key), Done: Done(done)}
}

func (e userErrors) Lost(l hold.Loss) error {
	lost := &LostError{Table: e.c.cfg.Table, Key: Key(l.Key), Token: l.Token, Reason: LostReason(l.Reason), At: l.At, Err: l.Err}
	if l.By != nil {
		by := recordOf(*l.By)
		lost.By = &by
	}
	return lost
}

func (e userErrors) Loss(err error) (hold.Loss, bool) {
	lost := (*LostError)(nil)
	if !errors.As(err, &lost) {
		return hold.Loss{}, false
	}
	return hold.Loss{Reason: hold.Reason(lost.Reason), Err: lost.Err}, true
}

func (e userErrors) Uncommitted(key protocol.Key, reasons []types.CancellationReason, err error) error {
	return &CommitError{Table: e.c.cfg.Table, Key: Key(key), Reasons: reasons, Err: err}
}

func (e userErrors) Changed(now protocol.Record) error {
	return &ChangedError{Table: e.c.cfg.Table, Now: recordOf(now)}
}
