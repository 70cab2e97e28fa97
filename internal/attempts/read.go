package attempts

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Read reads the item with the given key by one strongly consistent GetItem request. It
// returns nil if the table does not contain the item. The error is a *Failure.
func (s *Sender) Read(ctx context.Context, key protocol.Key) (protocol.Item, error) {
	item, err := s.Keys.Key(key)
	if err != nil {
		return nil, &Failure{Cause: decide.Refused, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.Table), Key: item, ConsistentRead: aws.Bool(true),
	}, Once)
	if err := s.classify(ctx, err); err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// ReadAll reads the items with the given keys by as few strongly consistent BatchGetItem requests
// as possible. The result maps each key that was read to its item, or to nil if no item exists.
// ReadAll also returns the number of requests. The error is a *Failure, and concerns all keys that
// the map lacks: DynamoDB may throttle the reads of some keys alone.
func (s *Sender) ReadAll(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, int, error) {
	items := make(map[protocol.Key]protocol.Item, len(keys))
	requests := 0
	for chunk := range slices.Chunk(keys, MaxBatchGet) {
		ask := make([]protocol.Item, len(chunk))
		for i, key := range chunk {
			item, err := s.Keys.Key(key)
			if err != nil {
				return nil, requests, &Failure{Cause: decide.Refused, Err: err}
			}
			ask[i], items[key] = item, nil
		}
		var pauses Pauses
		for len(ask) > 0 {
			requests++
			within, cancel := context.WithTimeout(ctx, Limit)
			found, left, err := Batch(within, s.DB, s.Table, ask)
			cancel()
			err = s.classify(ctx, err)
			if err == nil && len(left) == len(ask) {
				err = &Failure{Cause: decide.Busy, Err: errNoneRead}
			}
			if err != nil {
				for _, unread := range ask {
					delete(items, s.Keys.Schema().KeyOf(unread))
				}
				return items, requests, err
			}
			for _, item := range found {
				items[s.Keys.Schema().KeyOf(item)] = item
			}
			if ask = left; len(ask) > 0 { // the reply was full, or DynamoDB throttled the read of the remaining keys
				s.Pause(ctx, &pauses)
			}
		}
	}
	return items, requests, nil
}

// errNoneRead is the error of a BatchGetItem request to which DynamoDB has replied without reading
// any key. The client treats it as throttling, because DynamoDB would also have throttled a GetItem
// request for one of these keys.
var errNoneRead = errors.New("throttled: the table has read none of the keys that a batch names")

// Batch reads items by one strongly consistent BatchGetItem request. Its second result contains
// the keys that DynamoDB has not read, because the reply was full or the table is throttled.
func Batch(ctx context.Context, db DB, table string, keys []protocol.Item) (found, left []protocol.Item, err error) {
	out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		table: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}}, Once)
	if err == nil && out.Responses == nil {
		err = missing(out.ResultMetadata, "responses")
	}
	if err != nil {
		return nil, nil, err
	}
	for _, items := range out.Responses { // the only key of this map is the name or the ARN of the requested table
		found = append(found, items...)
	}
	for _, unread := range out.UnprocessedKeys {
		left = append(left, unread.Keys...)
	}
	if len(found)+len(left) > len(keys) { // without this check, a broken server could make ReadAll run forever
		return nil, nil, &ForeignError{"the endpoint", fmt.Errorf("of %d keys it has found %d, and has left %d", len(keys), len(found), len(left))}
	}
	return found, left, nil
}

// ReadTogether reads items by one TransactGetItems request, without retries. It returns the
// items in the order of the given gets, with nil for an item that does not exist. The error is
// a *Failure.
func (s *Sender) ReadTogether(ctx context.Context, gets []types.TransactGetItem) ([]protocol.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	out, err := s.DB.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets}, Once)
	if err == nil && len(out.Responses) != len(gets) {
		err = fmt.Errorf("leasehold: %d items asked for, %d in the reply", len(gets), len(out.Responses))
	}
	if err := s.classify(ctx, err); err != nil {
		return nil, err
	}
	items := make([]protocol.Item, len(gets))
	for i, r := range out.Responses {
		if len(r.Item) > 0 {
			items[i] = r.Item
		}
	}
	return items, nil
}

// Page sends one request for the next page of items of the listing l, and moves the Walk
// past that page. The read is eventually consistent. The error is a *Failure.
func (s *Sender) Page(ctx context.Context, l Listing, at *Walk) ([]protocol.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	items, err := l.Page(ctx, s.DB, s.Table, s.Keys.Schema(), nil, at)
	return items, s.classify(ctx, err)
}

// Listing selects items of a table: all items, the items with a given partition key, or the
// items whose partition key has a given prefix.
type Listing struct {
	Partition string // selects only items with this partition key, if not empty
	Prefix    string // selects only items whose partition key has this prefix; ignored if Partition is set
}

// Page sends one Query or Scan request for the next page of items of the listing, and moves the
// Walk past that page. The field ConsistentRead of the request is the parameter "consistent".
func (l Listing) Page(ctx context.Context, db DB, table string, schema protocol.Schema, consistent *bool, at *Walk) ([]protocol.Item, error) {
	names := map[string]string{"#k": schema.Partition}
	value := func(name, s string) protocol.Item { return protocol.Item{name: &types.AttributeValueMemberS{Value: s}} }
	if l.Partition != "" {
		out, err := db.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String(table), ExclusiveStartKey: at.Start, ConsistentRead: consistent,
			KeyConditionExpression: aws.String("#k = :k"), ExpressionAttributeNames: names, ExpressionAttributeValues: value(":k", l.Partition),
		}, Once)
		if err != nil {
			return nil, err
		}
		return out.Items, at.Pass(out.ResultMetadata, out.Items, out.LastEvaluatedKey)
	}
	in := &dynamodb.ScanInput{TableName: aws.String(table), ExclusiveStartKey: at.Start, ConsistentRead: consistent}
	if l.Prefix != "" {
		in.FilterExpression = aws.String("begins_with(#k, :p)")
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = names, value(":p", l.Prefix)
	}
	out, err := db.Scan(ctx, in, Once)
	if err != nil {
		return nil, err
	}
	return out.Items, at.Pass(out.ResultMetadata, out.Items, out.LastEvaluatedKey)
}

// Walk is the progress of a listing that reads the items of a table page by page. The zero Walk is
// at the beginning of the table. A Walk is not safe for concurrent use.
type Walk struct {
	Start protocol.Item // key at which the next page starts; empty at the beginning and at the end of the table

	// DynamoDB never ends two pages of a listing at the same key, but a broken server may do so
	// forever. Pass compares each end with kept. After 1, then 2, 4, 8 … more pages, it replaces
	// kept (Brent, "An improved Monte Carlo factorization algorithm", 1980).
	kept        protocol.Item // key at which an earlier page ended
	since, most int           // number of pages since kept was set, and number of pages after which kept is replaced
}

// Pass advances w past a page; next is where the following page starts. It fails and leaves w.Start
// unchanged if the reply has no list of items, or if next equals w.kept. In the second case, the
// error is a *Failure with cause Refused.
func (w *Walk) Pass(reply middleware.Metadata, items []protocol.Item, next protocol.Item) error {
	if items == nil {
		if err := missing(reply, "items"); err != nil { // DynamoDB sends an empty list of items for an empty page, and does not omit the list
			return err
		}
	}
	if w.most == 0 {
		w.kept, w.most = w.Start, 1
	}
	if len(next) > 0 && reflect.DeepEqual(next, w.kept) {
		return &Failure{Cause: decide.Refused, Err: &ForeignError{"the endpoint", errors.New("a page ends where one before it did, and says that there is more")}}
	}
	if w.since++; w.since == w.most {
		w.kept, w.since, w.most = next, 0, 2*w.most
	}
	w.Start = next
	return nil
}
