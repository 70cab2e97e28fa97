// Package dynamolock is a stub of cirello.io/dynamolock. It declares only what the driver uses.
// Each of the stub's attempts to acquire a lock is a single conditional write. If no checkout of
// the real library is available, tests build the driver with the stub.
package dynamolock

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client acquires and releases locks in one table.
type Client struct {
	db           *dynamodb.Client
	table, owner string
}

// Lock is a lock that a Client has acquired.
type Lock struct {
	key, owner string
	released   bool
}

// Types of options, with the names that they have in cirello.io/dynamolock. The stub ignores all
// options except WithOwnerName and FailIfLocked.
type (
	ClientOption      func(*Client)
	AcquireLockOption func(*bool)
	ReleaseLockOption func()
)

// LockNotGrantedError is returned by an acquire if another client holds the key.
type LockNotGrantedError struct{}

func (*LockNotGrantedError) Error() string { return "not granted" }

// ErrLockAlreadyReleased is returned by a second release of the same lock.
var ErrLockAlreadyReleased = errors.New("already released")

func WithLeaseDuration(time.Duration) ClientOption   { return func(*Client) {} }
func WithHeartbeatPeriod(time.Duration) ClientOption { return func(*Client) {} }
func WithPartitionKeyName(string) ClientOption       { return func(*Client) {} }
func WithOwnerName(name string) ClientOption         { return func(c *Client) { c.owner = name } }

func WithData([]byte) AcquireLockOption { return func(*bool) {} }
func ReplaceData() AcquireLockOption    { return func(*bool) {} }
func WithAdditionalAttributes(map[string]types.AttributeValue) AcquireLockOption {
	return func(*bool) {}
}
func WithRefreshPeriod(time.Duration) AcquireLockOption               { return func(*bool) {} }
func FailIfLocked() AcquireLockOption                                 { return func(fail *bool) { *fail = true } }
func WithAdditionalTimeToWaitForLock(time.Duration) AcquireLockOption { return func(*bool) {} }

func WithDataAfterRelease([]byte) ReleaseLockOption { return func() {} }
func WithDeleteLock(bool) ReleaseLockOption         { return func() {} }

func New(db *dynamodb.Client, table string, opts ...ClientOption) (*Client, error) {
	c := &Client{db: db, table: table, owner: "stub"}
	for _, opt := range opts {
		opt(c)
	}
	return c, nil
}

func (c *Client) key(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}}
}

func (c *Client) AcquireLockWithContext(ctx context.Context, key string, opts ...AcquireLockOption) (*Lock, error) {
	fail := false
	for _, opt := range opts {
		opt(&fail)
	}
	for {
		item := c.key(key)
		item["ownerName"] = &types.AttributeValueMemberS{Value: c.owner}
		_, err := c.db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(c.table), Item: item, ConditionExpression: aws.String("attribute_not_exists(#k)"),
			ExpressionAttributeNames: map[string]string{"#k": "key"},
		})
		var held *types.ConditionalCheckFailedException
		switch {
		case err == nil:
			return &Lock{key: key, owner: c.owner}, nil
		case !errors.As(err, &held):
			return nil, err
		case fail:
			return nil, &LockNotGrantedError{}
		}
	}
}

func (c *Client) ReleaseLockWithContext(ctx context.Context, l *Lock, _ ...ReleaseLockOption) (bool, error) {
	if l.released {
		return false, ErrLockAlreadyReleased
	}
	l.released = true
	_, err := c.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(c.table), Key: c.key(l.key)})
	return err == nil, err
}

func (c *Client) GetWithContext(ctx context.Context, key string) (*Lock, error) {
	out, err := c.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(c.table), Key: c.key(key)})
	if err != nil || out.Item == nil {
		return nil, err
	}
	return &Lock{key: key, owner: out.Item["ownerName"].(*types.AttributeValueMemberS).Value}, nil
}

func (l *Lock) OwnerName() string                                     { return l.owner }
func (l *Lock) Data() []byte                                          { return nil }
func (l *Lock) AdditionalAttributes() map[string]types.AttributeValue { return nil }
func (l *Lock) IsExpired() bool                                       { return l.released }
