// Package table creates and checks lock tables, and writes the texts that
// infrastructure code needs.
//
// It is apart from package leasehold so that a service can hold locks without
// the permissions that these calls need.
package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// DB is what Create and Check need; apart from leasehold.DB so that the
// service itself runs without these permissions. *dynamodb.Client has it.
type DB interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// Spec is a lock table as it should be.
type Spec struct {
	Name               string        // required; an ARN for Check
	Layout             layout.Layout // default layout.Native{}
	ReadUnits          int64         // 0 and 0: pay per request
	WriteUnits         int64
	Tags               map[string]string
	DeletionProtection bool
}

// Problem is one way in which a table does not fit.
type Problem struct {
	Fatal bool   // locks would fail or be unsafe
	What  string // what is, what should be, what to do
}

// complete checks the spec and returns what its layout asks for.
func (s Spec) complete() (protocol.Schema, error) {
	var errs []error
	if s.Name == "" {
		errs = append(errs, errors.New("table: Spec.Name is empty: name the lock table"))
	}
	if s.ReadUnits < 0 || s.WriteUnits < 0 || (s.ReadUnits == 0) != (s.WriteUnits == 0) {
		errs = append(errs, fmt.Errorf("table: ReadUnits is %d and WriteUnits %d: both above 0, or both 0 to pay per request", s.ReadUnits, s.WriteUnits))
	}
	proto, err := records.Of(cmp.Or[layout.Layout](s.Layout, layout.Native{}))
	if err := errors.Join(append(errs, err)...); err != nil {
		return protocol.Schema{}, err
	}
	return proto.Schema(), nil
}
