package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/table"
)

// permission is an action of IAM that commands need. For a transaction IAM checks
// the actions of its items: that of a condition check is ConditionCheckItem.
type permission struct {
	action string // without the prefix dynamodb:
	uses   string // what needs it
	fatal  bool   // no lock can be acquired without it
	try    func(context.Context) error
}

// neededFor reports whether a policy for that access allows the action.
func (p permission) neededFor(access table.Access) bool {
	return strings.Contains(table.Spec{}.Policy("", access), `"dynamodb:`+p.action+`"`)
}

// permissions returns every action on items that the commands and a lock client
// use, with a request that tries it. Writes have a condition that never holds, and so
// change nothing: IAM looks at them all the same.
func (t *Target) permissions() []permission {
	name, names, never := aws.String(t.Table), t.names(), aws.String(never)
	return []permission{
		{"GetItem", "every command", true, t.get},
		{"BatchGetItem", "several keys, permits (run -p), ls --check in few requests", false, func(ctx context.Context) error {
			_, err := t.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				t.Table: {Keys: []protocol.Item{t.item}, ConsistentRead: aws.Bool(true)},
			}})
			return err
		}},
		{"UpdateItem", "run, elect, acquire, renew, release, break", true, func(ctx context.Context) error {
			_, err := t.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: t.item, ConditionExpression: never, ExpressionAttributeNames: names})
			return err
		}},
		{"DeleteItem", "releases that delete the record, bench, demo", false, func(ctx context.Context) error {
			_, err := t.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: t.item, ConditionExpression: never, ExpressionAttributeNames: names})
			return err
		}},
		{"ConditionCheckItem", "transactions: several keys, and writes of Commit", false, func(ctx context.Context) error {
			_, err := t.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
				ConditionCheck: &types.ConditionCheck{TableName: name, Key: t.item, ConditionExpression: never, ExpressionAttributeNames: names},
			}}})
			return err
		}},
		{"Query", "ls --partition", false, func(ctx context.Context) error {
			_, err := t.DB.Query(ctx, &dynamodb.QueryInput{
				TableName: name, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#k = :k"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: protocol.Item{":k": t.item[names["#k"]]},
			})
			return err
		}},
		{"Scan", "ls, table rewrite", false, func(ctx context.Context) error {
			_, err := t.DB.Scan(ctx, &dynamodb.ScanInput{TableName: name, Limit: aws.Int32(1)})
			return err
		}},
	}
}

// try tries a permission.
func (t *Target) try(ctx context.Context, p permission) []Finding {
	err := patiently(ctx, p.try)
	var unmet *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	action := "dynamodb:" + p.action
	if err == nil || errors.As(err, &unmet) || errors.As(err, &cancelled) {
		return []Finding{{Check: p.action, State: OK, What: "allowed: " + p.uses, Values: map[string]any{"action": action, "allowed": true}}}
	}
	t.denied = append(t.denied, action)
	f := Finding{Check: p.action, State: Warning}
	if p.fatal {
		f.State = Fatal
	}
	switch cause := decide.Classify(err).Cause; {
	case decide.Denied(err):
		f.Values = map[string]any{"action": action, "allowed": false}
		if !p.neededFor(t.Access) {
			f.State, f.What = OK, fmt.Sprintf("denied, and access %s does not need it: %s", t.Access, p.uses)
			break
		}
		f.What = "denied: " + p.uses
		f.Do = fmt.Sprintf("allow %s in the caller's IAM policy, as leasehold table policy %s does", action, t.Access)
	case cause == decide.Busy:
		f.State, f.What = Unknown, "throttled: not known"
	case cause == decide.Unreachable:
		return []Finding{failed(p.action, err)}
	default:
		f.What, f.Err = "refused: "+p.uses, err
	}
	return []Finding{f}
}
