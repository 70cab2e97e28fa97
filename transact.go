package leasehold

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// The most items of one request (DynamoDB API reference, "TransactWriteItems"
// and "BatchGetItem").
const (
	maxTransact = 100
	maxBatchGet = 100
)

// transact sends writes as one transaction, once. As with write, ctx's end does
// not end it.
//
// Each attempt has a token of its own. Under one token for all, a repetition
// would have to repeat the first attempt's versions and conditions: trust would
// count from the first sending however late it landed, and what was learned
// since could not be said. A new attempt whose conditions name the versions
// still unresolved either grants or replaces. Its own token keeps a copy that
// the network makes of it from being applied again.
func (c *Client) transact(ctx context.Context, writes []*protocol.Write, within time.Duration) (decide.Transaction, error) {
	return c.transactUntil(context.WithoutCancel(ctx), writes, within)
}

// transactUntil is transact whose answer is waited for no longer than ctx lasts.
func (c *Client) transactUntil(ctx context.Context, writes []*protocol.Write, within time.Duration) (decide.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(protocol.NewVersion())}
	for _, w := range writes {
		in.TransactItems = append(in.TransactItems, w.TransactItem(c.cfg.Table))
	}
	_, err := c.db.TransactWriteItems(ctx, in, noRetries)
	t := decide.ClassifyTransaction(err)
	t.Cause, err = c.causeOf(t.Cause, err)
	if err != nil && t.Cause != decide.ConditionFailed {
		c.log.LogAttrs(ctx, slog.LevelDebug, "leasehold: request failed", slog.Any("err", err))
	}
	return t, err
}

// readAll reads the records of keys consistently, by as few requests as it
// takes, and says how many those were. A key without a record has no item. It
// ends with ctx.
func (c *Client) readAll(ctx context.Context, keys []Key) (map[Key]protocol.Item, int, answer) {
	items := make(map[Key]protocol.Item, len(keys))
	requests := 0
	for chunk := range slices.Chunk(keys, maxBatchGet) {
		ask := make([]protocol.Item, len(chunk))
		for i, key := range chunk {
			item, err := c.proto.Key(protocol.Key(key))
			if err != nil {
				return nil, requests, answer{Reply: decide.Reply{Effect: decide.NotApplied, Cause: decide.Refused}, err: err}
			}
			ask[i] = item
		}
		for n := 0; len(ask) > 0; n++ {
			if n > 0 { // the reply was full, or the table is throttled
				pause(ctx.Done(), c.backoff(n-1, time.Second))
			}
			requests++
			found, left, err := c.readBatch(ctx, ask)
			if err != nil {
				return nil, requests, c.classified(ctx, answer{err: err})
			}
			for _, item := range found {
				items[Key(c.proto.Schema().KeyOf(item))] = item
			}
			ask = left
		}
	}
	return items, requests, answer{Reply: decide.Reply{Effect: decide.Applied}}
}

// readBatch sends one BatchGetItem, and returns what it left unread as well.
func (c *Client) readBatch(ctx context.Context, keys []protocol.Item) (found, left []protocol.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	out, err := c.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		c.cfg.Table: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}}, noRetries)
	if err != nil {
		return nil, nil, err
	}
	for _, items := range out.Responses { // of one table, by its name where it was asked for by its ARN
		found = append(found, items...)
	}
	for _, unread := range out.UnprocessedKeys {
		left = append(left, unread.Keys...)
	}
	return found, left, nil
}
