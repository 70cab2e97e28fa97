package breaking

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// ErrHolderUntold is returned when a grant was broken, but the session of its holder could
// not be notified.
var ErrHolderUntold = errors.New("leasehold: holder not told of the break")

// untold returns an error that wraps ErrHolderUntold and err, the reason.
func (c *Breaker) untold(key protocol.Key, err error) error {
	return c.Errors.Failed("break", key, fmt.Errorf(
		"%w: the key is free, and a live holder learns of it within twenty minutes; its commits fail at once: %w", ErrHolderUntold, err))
}

// tell notifies the session of r that the grant in r was broken, or may have been broken. It
// does nothing if r has no session. It sends at least one request, and repeats it until
// limit ends.
func (c *Breaker) tell(limit context.Context, r protocol.Record) error {
	proto := c.Native
	if proto == nil || r.Session == "" {
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
		if row == nil { // the row is missing, or the reply does not contain it
			var err error
			if row, err = c.Requests.Read(ctx, key); err != nil {
				return err
			}
		}
		return c.whyNot(proto, key, row)
	}, func(f *attempts.Failure) error {
		if f.Cause == decide.Busy {
			c.ReportThrottled(ctx, r.Key, r.Token, f.Err)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	return c.untold(r.Key, errors.Join(attempts.Cause(limit), err))
}

// whyNot returns the reason why the row of a session did not accept the notice of a break.
// It returns nil if the session has ended with its locks, so that no client needs the
// notice.
func (c *Breaker) whyNot(proto protocol.Native, key protocol.Key, row protocol.Item) error {
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
	return errors.New("its client's version does not read break notices")
}
