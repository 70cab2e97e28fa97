// Package table creates and checks lock tables. It also generates Terraform and CloudFormation
// code and IAM policies for them.
//
// Package table is separate from package leasehold, so that a service can hold locks without
// the permissions that Create and Check need.
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

// DB is the part of *dynamodb.Client that Create and Check need. It is separate from
// leasehold.DB, so that a service can run without the permissions for these requests.
type DB interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// Spec describes a lock table.
type Spec struct {
	Name   string        // required; for Check it may also be an ARN
	Layout layout.Layout // nil means layout.Native{}
	// Provisioned capacity. By default both are zero, and the table has on-demand capacity.
	ReadUnits  int64
	WriteUnits int64
	Tags       map[string]string
	// Whether Create turns on deletion protection, with which DynamoDB refuses to delete the
	// table. Templates for Terraform and CloudFormation turn it on by default: see Disposable.
	DeletionProtection bool

	// Disposable makes a table easy to delete if Terraform or CloudFormation has created it. Otherwise
	// DynamoDB refuses to delete the table, the tool does not delete it, and DynamoDB can recover it
	// to a point in time. AWS charges for this recovery by the size of the table.
	Disposable bool
}

// Problem is one way in which a table does not fit its Spec.
type Problem struct {
	Fatal bool   // whether locks would fail or be unsafe because of the problem
	About string // what does not fit: "status", "keys", "ttl" or "replicas"
	What  string // text with the problem, the expected state and the remedy
}

// The method "complete" returns the key schema and the TTL attribute that the spec's layout needs,
// or an error if the spec is invalid.
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
