package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/scratch"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// On-demand prices, in dollars for a million request units, and where they are from.
const (
	WritePrice = 0.625
	ReadPrice  = 0.125
	PricedAt   = "on-demand prices of us-east-1 since November 2024"
)

// A part ends early once it has used so many units for each second it may take, so that
// the cost said at first is not exceeded.
const (
	writesPerSecond = 1000
	readsPerSecond  = 2000
)

// MayDelete returns an error if the keys could not be deleted, or if nobody answers.
func (b *Bench) MayDelete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	err := scratch.Delete(ctx, b.store, scratch.Key(b.store, b.name, "bench")) // nobody has it yet
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		return leasehold.ErrTableNotFound
	case decide.Denied(err):
		return misuse.Errorf("bench could not delete its keys: allow dynamodb:DeleteItem in the caller's IAM policy")
	}
	return err
}

// Offer says what a run will do and cost.
func (b *Bench) Offer(ctx context.Context) []string {
	took := 3*b.Duration + b.takeoverPart()
	writes, reads := took.Seconds()*writesPerSecond, took.Seconds()*readsPerSecond
	cost := "a local store costs nothing: the bill is that of the same requests to a table"
	if b.store.File == "" {
		dollars := (writes*b.WritePrice + reads*b.ReadPrice) / 1e6
		cost = fmt.Sprintf("it uses at most about %.0f write units and %.0f read units: %s %s", writes, reads, dollarsText(dollars), b.pricedAt())
	}
	offer := []string{
		fmt.Sprintf("bench measures %s for about %s, writes only keys that begin with %s and deletes them", b.store.Where(), wording.Age(took+time.Second-1), Prefix),
		cost,
	}
	if provisioned := b.provisioned(ctx); provisioned > 0 {
		offer = append(offer, fmt.Sprintf("the table has %d write units a second: its other users, locks included, will be throttled meanwhile", provisioned))
	}
	return offer
}

func (b *Bench) pricedAt() string {
	if b.WritePrice == WritePrice && b.ReadPrice == ReadPrice {
		return "at the " + PricedAt
	}
	return "at the prices given"
}

// dollarsText formats a bill for people.
func dollarsText(dollars float64) string {
	if dollars > 0 && dollars < 0.01 {
		return "less than $0.01"
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// provisioned returns the table's write units a second. 0: it is paid per request,
// or the caller may not ask.
func (b *Bench) provisioned(ctx context.Context) int64 {
	out, err := b.store.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(b.store.Table)})
	if err != nil || out.Table == nil || out.Table.ProvisionedThroughput == nil {
		return 0
	}
	return aws.ToInt64(out.Table.ProvisionedThroughput.WriteCapacityUnits)
}
