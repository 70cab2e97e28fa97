// Package table creates and checks lock tables. It also writes Terraform,
// CloudFormation and IAM policies for them.
//
// It is separate from package leasehold, so that a service can hold locks
// without the permissions that Create and Check need.
package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// DB is the part of *dynamodb.Client that Create and Check need. It is separate
// from leasehold.DB, so that a service runs without these permissions.
type DB interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// Spec describes a lock table.
type Spec struct {
	Name               string        // required; Check also accepts an ARN
	Layout             layout.Layout // default layout.Native{}
	ReadUnits          int64         // provisioned capacity; 0 and 0, the default, mean on-demand capacity
	WriteUnits         int64
	Tags               map[string]string
	DeletionProtection bool // for Create: whether DynamoDB refuses to delete the table

	// Disposable makes the table of Terraform and CloudFormation easy to delete. By
	// default, the tool and DynamoDB refuse to delete the table, and DynamoDB can recover
	// it to a point in time. AWS charges for point-in-time recovery by the size of the
	// table.
	Disposable bool
}

// Problem is one way in which a table does not fit its Spec.
type Problem struct {
	Fatal bool   // if true, locks would fail or be unsafe
	About string // "status", "keys", "ttl" or "replicas"
	What  string // the problem, the expected state, and the remedy
}

// complete checks the spec, and returns the key schema and the TTL attribute that its
// layout needs.
func (s Spec) complete() (protocol.Schema, error) {
	var errs []error
	if s.Name == "" {
		errs = append(errs, errors.New("table: Spec.Name is empty: name the lock table"))
	}
	if s.ReadUnits < 0 || s.WriteUnits < 0 || (s.ReadUnits == 0) != (s.WriteUnits == 0) {
		errs = append(errs, fmt.Errorf("table: ReadUnits is %d and WriteUnits is %d: set both above 0, or both to 0 to pay per request", s.ReadUnits, s.WriteUnits))
	}
	proto, err := records.Of(s.layout())
	if err := errors.Join(append(errs, err)...); err != nil {
		return protocol.Schema{}, err
	}
	return proto.Schema(), nil
}
