package ui

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Source reads the table and breaks grants for a Server. Its methods are safe for
// concurrent use.
type Source interface {
	// Page reads the page of the table that begins at the position of the given Walk. It then
	// moves the Walk to the next page.
	Page(ctx context.Context, at *attempts.Walk) (Page, error)

	// Item reads one item. It returns a nil item if the item does not exist.
	Item(ctx context.Context, key protocol.Key) (item protocol.Item, units float64, err error)

	// Record reads the record of a key.
	Record(ctx context.Context, key protocol.Key) (leasehold.Record, error)

	// Break breaks r's grant if that grant is still current. If "unrenewed" is true, the grant must
	// also not have been renewed since r was read. Break stores the reason if the layout supports
	// that.
	Break(ctx context.Context, r leasehold.Record, reason string, unrenewed bool) error
}

// Page is one page of the table, and the read units that reading it consumed.
type Page struct {
	Items []protocol.Item
	Units float64
}

// pageLimit is the maximum number of items that one request reads. It keeps the read units of a
// request low, so that the scanner can limit the rate precisely.
const pageLimit = 250

// Table is a Source that reads a DynamoDB table. All its reads are strongly consistent, so that a
// stale replica cannot make a live holder appear dead.
type Table struct {
	db    leasehold.DB
	name  string
	locks *leasehold.Client
	proto protocol.Protocol
	caps  layout.Capabilities
}

// NewTable returns the Source for the named table. It decodes records with proto, and breaks grants
// with the client "locks".
func NewTable(db leasehold.DB, name string, locks *leasehold.Client, proto protocol.Protocol, caps layout.Capabilities) *Table {
	return &Table{db, name, locks, proto, caps}
}

// Page implements Source by a Scan request.
func (t *Table) Page(ctx context.Context, at *attempts.Walk) (Page, error) {
	out, err := t.db.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(t.name), ExclusiveStartKey: at.Start, Limit: aws.Int32(pageLimit),
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err == nil {
		err = at.Pass(out.ResultMetadata, out.Items, out.LastEvaluatedKey)
	}
	if err != nil {
		return Page{}, err
	}
	return Page{Items: out.Items, Units: units(out.ConsumedCapacity)}, nil
}

// Item implements Source by a GetItem request.
func (t *Table) Item(ctx context.Context, key protocol.Key) (protocol.Item, float64, error) {
	k, err := t.proto.Key(key)
	if err != nil {
		return nil, 0, err
	}
	out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(t.name), Key: k,
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return nil, 0, err
	}
	if len(out.Item) == 0 {
		return nil, units(out.ConsumedCapacity), nil
	}
	return out.Item, units(out.ConsumedCapacity), nil
}

// Record implements Source.
func (t *Table) Record(ctx context.Context, key protocol.Key) (leasehold.Record, error) {
	return holders.Get(ctx, t.locks, key)
}

// Break implements Source.
func (t *Table) Break(ctx context.Context, r leasehold.Record, reason string, unrenewed bool) error {
	if !t.caps.KeepOnRelease {
		reason = ""
	}
	if err := t.locks.Break(ctx, r, leasehold.BreakOptions{Reason: reason, IfUnrenewed: unrenewed}); err != nil {
		return fmt.Errorf("break: %w", err)
	}
	return nil
}

// units returns the read units that a request consumed. It returns 1 if the engine does not
// report the units.
func units(c *types.ConsumedCapacity) float64 {
	if c == nil || c.CapacityUnits == nil {
		return 1
	}
	return *c.CapacityUnits
}
