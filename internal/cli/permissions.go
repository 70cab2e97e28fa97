package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/table"
)

// permission is an action of IAM that commands need. For a transaction IAM checks
// the actions of its items: that of a condition check is ConditionCheckItem.
type permission struct {
	action string
	uses   string // what needs it
	fatal  bool   // no lock can be acquired without it
	try    func(context.Context) error
}

// neededFor reports whether a policy for that access allows the action.
func (p permission) neededFor(access table.Access) bool {
	return strings.Contains(table.Spec{}.Policy("", access), `"`+p.action+`"`)
}

// permissions returns every action on items that the commands and a lock client
// use, with a request that tries it on key. Writes have a condition that never
// holds, and so change nothing: IAM looks at them all the same.
func (s *store) permissions(key leasehold.Key) ([]permission, error) {
	proto, err := records.Of(s.layout)
	if err != nil {
		return nil, err
	}
	item, err := proto.Key(protocol.Key(key))
	if err != nil {
		return nil, err
	}
	partition := proto.Schema().Partition
	name, names := aws.String(s.table), map[string]string{"#k": partition}
	never := aws.String("attribute_exists(#k) AND attribute_not_exists(#k)")
	return []permission{
		{"dynamodb:GetItem", "every command", true, func(ctx context.Context) error {
			_, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: name, Key: item, ConsistentRead: aws.Bool(true)})
			return err
		}},
		{"dynamodb:BatchGetItem", "several keys, permits (run -p), ls --check in few requests", false, func(ctx context.Context) error {
			_, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				s.table: {Keys: []protocol.Item{item}, ConsistentRead: aws.Bool(true)},
			}})
			return err
		}},
		{"dynamodb:UpdateItem", "run, elect, acquire, renew, release, break", true, func(ctx context.Context) error {
			_, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: item, ConditionExpression: never, ExpressionAttributeNames: names})
			return err
		}},
		{"dynamodb:DeleteItem", "releases that delete the record, bench, demo", false, func(ctx context.Context) error {
			_, err := s.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: item, ConditionExpression: never, ExpressionAttributeNames: names})
			return err
		}},
		{"dynamodb:ConditionCheckItem", "transactions: several keys, and writes of Commit", false, func(ctx context.Context) error {
			_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
				ConditionCheck: &types.ConditionCheck{TableName: name, Key: item, ConditionExpression: never, ExpressionAttributeNames: names},
			}}})
			return err
		}},
		{"dynamodb:Query", "ls --partition", false, func(ctx context.Context) error {
			_, err := s.db.Query(ctx, &dynamodb.QueryInput{
				TableName: name, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#k = :k"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: protocol.Item{":k": item[partition]},
			})
			return err
		}},
		{"dynamodb:Scan", "ls, table rewrite", false, func(ctx context.Context) error {
			_, err := s.db.Scan(ctx, &dynamodb.ScanInput{TableName: name, Limit: aws.Int32(1)})
			return err
		}},
	}, nil
}

// allowed makes of the error of a try whether the action is allowed. A condition
// that did not hold means that it is.
func allowed(err error) (bool, error) {
	var failed *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	switch {
	case err == nil, errors.As(err, &failed), errors.As(err, &cancelled):
		return true, nil
	case isDenied(err):
		return false, nil
	}
	return false, err
}

// isDenied reports whether IAM denied a request.
func isDenied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "AccessDeniedException" || api.ErrorCode() == "AccessDenied")
}
