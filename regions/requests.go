package regions

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// GetItem implements leasehold.DB.
func (d *DB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return send(ctx, d, in.TableName, read, in.Key, in, optFns, (*dynamodb.Client).GetItem)
}

// UpdateItem implements leasehold.DB.
func (d *DB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return send(ctx, d, in.TableName, write, in.Key, in, optFns, (*dynamodb.Client).UpdateItem)
}

// DeleteItem implements leasehold.DB.
func (d *DB) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return send(ctx, d, in.TableName, write, in.Key, in, optFns, (*dynamodb.Client).DeleteItem)
}

// Query implements leasehold.DB.
func (d *DB) Query(ctx context.Context, in *dynamodb.QueryInput, optFns ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return send(ctx, d, in.TableName, notBrief, nil, in, optFns, (*dynamodb.Client).Query)
}

// Scan implements leasehold.DB.
func (d *DB) Scan(ctx context.Context, in *dynamodb.ScanInput, optFns ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return send(ctx, d, in.TableName, notBrief, nil, in, optFns, (*dynamodb.Client).Scan)
}

// BatchGetItem implements leasehold.DB.
func (d *DB) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	var table *string
	for name := range in.RequestItems {
		table = &name // all keys are in one table, because leasehold uses only one
	}
	return send(ctx, d, table, notBrief, nil, in, optFns, (*dynamodb.Client).BatchGetItem)
}

// TransactGetItems implements leasehold.DB. It always sends the request to the home Region. Other
// Regions would not help: only requests to a table that is strongly consistent across Regions
// (MRSC) may go there, and such a table refuses transactions in every Region.
func (d *DB) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return d.clients[0].TransactGetItems(ctx, in, optFns...)
}

// TransactWriteItems implements leasehold.DB. It sends the request to the home Region, for the same
// reason as TransactGetItems.
func (d *DB) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return d.clients[0].TransactWriteItems(ctx, in, optFns...)
}
