package breaking

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// ErrHolderUntold says that a grant is broken, and its session could not be told.
var ErrHolderUntold = errors.New("leasehold: holder not told of the break")

// untold is that error, and why.
func (c *Client) untold(key protocol.Key, err error) error {
	return c.Errors.Failed("break", key, fmt.Errorf(
		"%w: the key is free, and the holder, if it lives, learns of it within twenty minutes; its commits fail at once: %w", ErrHolderUntold, err))
}

// tell tells the session of r, if it is under one, that the grant in r was broken, or may
// have been. It tries until limit ends, and once at least.
func (c *Client) tell(limit context.Context, r protocol.Record) error {
	proto, ok := c.Proto.(protocol.Native)
	if !ok || r.Session == "" {
		return nil
	}
	word, ctx := protocol.NewVersion(), context.WithoutCancel(limit)
	err := c.Requests.Repeat(limit, func() error {
		reply := c.Requests.Write(ctx, proto.TellBroken(r.Session, word, r.Grant), attempts.Limit)
		switch {
		case reply.Effect == decide.Applied:
			return nil
		case reply.Cause != decide.ConditionFailed:
			return &attempts.Failure{Cause: reply.Cause, Err: reply.Err}
		}
		row, key := reply.Old, proto.SessionKey(r.Session)
		if row == nil { // there is none, or the engine does not return it
			var err error
			if row, err = c.Requests.Read(ctx, key); err != nil {
				return err
			}
		}
		return c.whyNot(proto, key, row)
	}, func(f *attempts.Failure) error {
		if f.Cause == decide.Busy {
			c.Throttled(ctx, r.Key, r.Token, f.Err)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if f := attempts.FailureOf(err); f != nil {
		err = f.Err
	}
	return c.untold(r.Key, errors.Join(attempts.Cause(limit), err))
}

// whyNot says why the row of a session cannot be told of a break. nil: its locks have ended
// with it, and there is nobody to tell.
func (c *Client) whyNot(proto protocol.Native, key protocol.Key, row protocol.Item) error {
	if row == nil {
		return nil
	}
	shown, err := proto.Session().Decode(row)
	switch {
	case err != nil:
		return c.Errors.Unreadable(key, row, err)
	case shown.Released:
		return nil
	}
	return errors.New("its client is of a version that cannot be told")
}
