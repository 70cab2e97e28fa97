package attempts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Read reads the item of key consistently, once; nil: there is none. The error
// is a *Failure.
func (s *Sender) Read(ctx context.Context, key protocol.Key) (protocol.Item, error) {
	item, err := s.Keys.Key(key)
	if err != nil {
		return nil, &Failure{Cause: decide.Refused, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.Table), Key: item, ConsistentRead: aws.Bool(true),
	}, once)
	if err := s.Failure(ctx, err); err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return out.Item, nil
}

// ReadAll reads the items of keys consistently, in as few requests as possible, and
// returns their number. A key without an item is not in the map. The error is a
// *Failure.
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
			ask[i] = item
		}
		var pauses Pauses
		for len(ask) > 0 {
			requests++
			found, left, err := s.readBatch(ctx, ask)
			if err := s.Failure(ctx, err); err != nil {
				return nil, requests, err
			}
			for _, item := range found {
				items[s.Keys.Schema().KeyOf(item)] = item
			}
			if ask = left; len(ask) > 0 { // the reply was full, or the table is throttled
				if len(found) == 0 {
					return nil, requests, &Failure{Cause: decide.Busy, Err: errNoneRead}
				}
				s.Pause(ctx, &pauses)
			}
		}
	}
	return items, requests, nil
}

// errNoneRead is what a batch says in its reply where other reads are refused as throttled.
var errNoneRead = errors.New("throttled: the table has read none of the keys that a batch names")

// readBatch sends one BatchGetItem. left are the keys that it has not read.
func (s *Sender) readBatch(ctx context.Context, keys []protocol.Item) (found, left []protocol.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	out, err := s.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		s.Table: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}}, once)
	if err == nil && out.Responses == nil {
		err = missing(out.ResultMetadata, "responses")
	}
	if err != nil {
		return nil, nil, err
	}
	for _, items := range out.Responses { // of one table, by its name where it was asked for by its ARN
		found = append(found, items...)
	}
	for _, unread := range out.UnprocessedKeys {
		left = append(left, unread.Keys...)
	}
	return found, left, CheckBatch(len(keys), len(found), len(left))
}

// CheckBatch returns why a batch cannot be DynamoDB's: of so many keys it has found and
// left more than there are. One that finds anything is smaller the next time.
func CheckBatch(asked, found, left int) error {
	if found+left > asked {
		return &ForeignError{"the endpoint", fmt.Errorf("of %d keys it has found %d, and has left %d", asked, found, left)}
	}
	return nil
}

// ReadTogether reads items in one transaction, once, in the order of gets; nil for one
// that does not exist. The error is a *Failure.
func (s *Sender) ReadTogether(ctx context.Context, gets []types.TransactGetItem) ([]protocol.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	out, err := s.DB.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets}, once)
	if err == nil && len(out.Responses) != len(gets) {
		err = fmt.Errorf("leasehold: %d items asked for, %d in the reply", len(gets), len(out.Responses))
	}
	if err := s.Failure(ctx, err); err != nil {
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

// Listing says which items of the table to list.
type Listing struct {
	Partition *string // only those with this partition key; nil: any
	Prefix    string  // only those whose partition key begins so
}

// Page reads the next page of a listing, once, and goes on past it. The reads are
// eventually consistent. The error is a *Failure.
func (s *Sender) Page(ctx context.Context, l Listing, at *Walk) ([]protocol.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	names := map[string]string{"#k": s.Keys.Schema().Partition}
	if l.Partition != nil {
		out, err := s.DB.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String(s.Table), ExclusiveStartKey: at.Start,
			KeyConditionExpression:    aws.String("#k = :k"),
			ExpressionAttributeNames:  names,
			ExpressionAttributeValues: protocol.Item{":k": &types.AttributeValueMemberS{Value: *l.Partition}},
		}, once)
		if err == nil {
			err = at.Pass(out.ResultMetadata, out.Items, out.LastEvaluatedKey)
		}
		if err := s.Failure(ctx, err); err != nil {
			return nil, err
		}
		return out.Items, nil
	}
	in := &dynamodb.ScanInput{TableName: aws.String(s.Table), ExclusiveStartKey: at.Start}
	if l.Prefix != "" {
		in.FilterExpression = aws.String("begins_with(#k, :p)")
		in.ExpressionAttributeNames = names
		in.ExpressionAttributeValues = protocol.Item{":p": &types.AttributeValueMemberS{Value: l.Prefix}}
	}
	out, err := s.DB.Scan(ctx, in, once)
	if err == nil {
		err = at.Pass(out.ResultMetadata, out.Items, out.LastEvaluatedKey)
	}
	if err := s.Failure(ctx, err); err != nil {
		return nil, err
	}
	return out.Items, nil
}
