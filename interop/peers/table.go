//go:build linux

package peers

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CreateTable creates a table with these keys and waits for it.
func (k Keys) CreateTable(ctx context.Context, db *dynamodb.Client, name string) error {
	in := &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   []types.KeySchemaElement{{AttributeName: aws.String(k.Partition), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(k.Partition), AttributeType: types.ScalarAttributeTypeS},
		},
	}
	if k.Sort != "" {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(k.Sort), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(k.Sort), AttributeType: k.SortType})
	}
	if _, err := db.CreateTable(ctx, in); err != nil {
		return fmt.Errorf("peers: create table %s: %w", name, err)
	}
	active := dynamodb.NewTableExistsWaiter(db)
	if err := active.Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute); err != nil {
		return fmt.Errorf("peers: wait for table %s: %w", name, err)
	}
	return nil
}
