package leasehold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// attemptLimit is the deadline of one attempt other than a renewal.
const attemptLimit = 3 * time.Second

// attempt is one write sent once. Its version is never used again.
type attempt struct {
	version string
	sent    decide.Instant
	lease   time.Duration
	owner   string
	session *session // under which it is granted, nil for none
	dead    *Record  // whom it takes over, if it does
}

func (c *Client) newAttempt(lease time.Duration) attempt {
	return attempt{version: protocol.NewVersion(), sent: c.now(), lease: lease, owner: c.owner}
}

// under lets an attempt be granted under a session, nil for none.
func (a attempt) under(s *session) attempt {
	if s != nil {
		a.owner, a.session = s.owner, s
	}
	return a
}

// lives reports whether a grant by this attempt, should it have landed, can be
// trusted at now.
func (a attempt) lives(t timing, now decide.Instant) bool {
	if a.session != nil {
		return a.session.row.ended() == nil
	}
	return !now.Past(t.trustedFrom(a.sent))
}

// isWorthHaving reports whether a grant by this attempt, should it have landed,
// can be trusted for half as long as a new one, or is under a session.
func (a attempt) isWorthHaving(t timing, now decide.Instant) bool {
	if a.session != nil {
		return a.lives(t, now)
	}
	return now.Remaining(t.trustedFrom(a.sent)) >= t.trust()/2
}

func versionsOf(attempts []attempt) []string {
	out := make([]string, len(attempts))
	for i, a := range attempts {
		out[i] = a.version
	}
	return out
}

// answer is the reply to one attempt.
type answer struct {
	decide.Reply
	item protocol.Item // the new item of a write that was applied, or the item read
	err  error
}

// noRetries turns the SDK's own repetition off: a repeated write must be a new
// attempt, with a new version and a condition that knows the attempts before.
func noRetries(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// write sends w once. It does not inherit ctx's end: a write that was begun is
// finished, and its effect taken care of by whoever began it.
func (c *Client) write(ctx context.Context, w *protocol.Write, within time.Duration) answer {
	return c.writeUntil(context.WithoutCancel(ctx), w, within)
}

// writeUntil is write whose answer is waited for no longer than ctx lasts.
func (c *Client) writeUntil(ctx context.Context, w *protocol.Write, within time.Duration) answer {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var a answer
	if w.IsDelete() {
		_, a.err = c.db.DeleteItem(ctx, w.DeleteItem(c.cfg.Table), noRetries)
	} else {
		var out *dynamodb.UpdateItemOutput
		if out, a.err = c.db.UpdateItem(ctx, w.UpdateItem(c.cfg.Table), noRetries); a.err == nil {
			a.item = out.Attributes
		}
	}
	return c.classified(ctx, a)
}

// read reads the record of key consistently, once. It ends with ctx.
func (c *Client) read(ctx context.Context, key Key) answer {
	item, err := c.proto.Key(protocol.Key(key))
	if err != nil {
		return answer{Reply: decide.Reply{Effect: decide.NotApplied, Cause: decide.Refused}, err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	out, err := c.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(c.cfg.Table), Key: item, ConsistentRead: aws.Bool(true),
	}, noRetries)
	a := answer{err: err}
	if err == nil && len(out.Item) > 0 {
		a.item = out.Item
	}
	return c.classified(ctx, a)
}

func (c *Client) classified(ctx context.Context, a answer) answer {
	a.Reply = decide.Classify(a.err)
	a.Cause, a.err = c.causeOf(a.Cause, a.err)
	if a.err != nil && a.Cause != decide.ConditionFailed {
		c.log.LogAttrs(ctx, slog.LevelDebug, "leasehold: request failed", slog.Any("err", a.err))
	}
	return a
}

// causeOf is the cause of an error by what this client has seen before.
func (c *Client) causeOf(cause decide.Cause, err error) (decide.Cause, error) {
	if !c.answered.Load() {
		if !decide.Answered(err) {
			return cause.After(false), err
		}
		c.answered.Store(true)
	}
	if without := (*unsignedError)(nil); cause == decide.Unsigned && !errors.As(err, &without) {
		err = &unsignedError{err}
	}
	return cause.After(true), err
}

// unknownOutcome is the error of an operation that gives up although one of its
// writes may have landed or may yet, whatever the last answer was.
func (c *Client) unknownOutcome(op string, key Key, err error) error {
	return opError(op, c.cfg.Table, key, fmt.Errorf("%w: %w", ErrUnknownOutcome, err))
}

// decode reads an item as a record of key.
func (c *Client) decode(key Key, item protocol.Item) (Record, error) {
	r, err := c.proto.Decode(item)
	if err != nil {
		return Record{}, c.recordError(key, item, err)
	}
	return recordOf(r), nil
}

// pause waits for d, or until done.
func pause(done <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	}
}

// backoff is the pause before a request is repeated for the nth time.
func (c *Client) backoff(n int, most time.Duration) time.Duration {
	return decide.Backoff(n, 50*time.Millisecond, most, c.chance())
}
