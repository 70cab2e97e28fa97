package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableCases returns the cases for the creation, description, listing and deletion of tables.
func tableCases() []Case {
	return []Case{
		{
			Name:  "DescribeTable shows how the table was created",
			Table: numberRange,
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
				if err != nil {
					return Reply{}, err
				}
				d := out.Table
				detail := fmt.Sprint(aws.ToString(d.TableName) == table, " ", d.TableStatus, " ", d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode == types.BillingModePayPerRequest,
					len(d.AttributeDefinitions), aws.ToString(d.TableArn) != "", d.CreationDateTime != nil)
				for _, k := range d.KeySchema {
					detail += fmt.Sprint(" ", aws.ToString(k.AttributeName), " ", k.KeyType)
				}
				return Reply{Detail: detail}, nil
			}),
			Want: Reply{Detail: "true ACTIVE true 2 true true pk HASH sk RANGE"},
		},
		{
			Name: "ListTables contains the table",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				var found int32
				pages := dynamodb.NewListTablesPaginator(client, &dynamodb.ListTablesInput{Limit: aws.Int32(3)})
				for pages.HasMorePages() {
					page, err := pages.NextPage(ctx)
					if err != nil {
						return Reply{}, err
					}
					for _, name := range page.TableNames {
						if name == table {
							found++
						}
					}
				}
				return Reply{Count: found}, nil
			}),
			Want: Reply{Count: 1},
		},
		{
			Name: "a table exists already",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				_, err := client.CreateTable(ctx, creation(table, hashKey))
				return Reply{}, err
			}),
			Want: Reply{Err: &Fault{Code: "ResourceInUseException", Text: "Table already exists: {table}"}},
		},
		{
			Name:  "a deleted table loses its items",
			Given: []Item{item(nil)},
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
					return Reply{}, err
				}
				waiter := dynamodb.NewTableNotExistsWaiter(client)
				if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, time.Minute); err != nil {
					return Reply{}, err
				}
				_, err := client.CreateTable(ctx, creation(table, hashKey))
				return Reply{}, err
			}),
			Then: []Item{},
		},
		{
			Name: "DescribeTable of an unknown table",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				_, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table + "-none")})
				return Reply{}, err
			}),
			Want: notFound("Requested resource not found: Table: {table}-none not found"),
		},
		{
			Name: "DeleteTable of an unknown table",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(table + "-none")})
				return Reply{}, err
			}),
			Want: notFound("Requested resource not found: Table: {table}-none not found"),
		},
		Case{Name: "GetItem of an unknown table", When: Get{}, Want: notFound("Requested resource not found")}.elsewhere(),
		Case{Name: "PutItem to an unknown table", When: Put{}, Want: notFound("Requested resource not found")}.elsewhere(),
		Case{Name: "UpdateItem of an unknown table", When: Update{}, Want: notFound("Requested resource not found")}.elsewhere(),
		Case{Name: "DeleteItem of an unknown table", When: Delete{}, Want: notFound("Requested resource not found")}.elsewhere(),
		Case{Name: "Scan of an unknown table", When: Scan{}, Want: notFound("Requested resource not found")}.elsewhere(),
		Case{Name: "Query of an unknown table", When: Query{Where: "pk = :p", Values: Item{":p": str("a")}},
			Want: notFound("Requested resource not found")}.elsewhere(),
		{
			Name: "a key whose attribute is not defined",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				in := creation(table+"-bad", hashKey)
				in.KeySchema[0].AttributeName = aws.String("other")
				_, err := client.CreateTable(ctx, in)
				return Reply{}, err
			}),
			Want: invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [other], AttributeDefinitions: [pk]"),
		},
		{
			Name: "a name that is too short",
			When: Call(func(ctx context.Context, client *dynamodb.Client, _ string) (Reply, error) {
				_, err := client.CreateTable(ctx, creation("no", hashKey))
				return Reply{}, err
			}),
			Want: invalid("Value at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"),
		},
		{
			Name: "tags are listed",
			When: Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
				described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
				if err != nil {
					return Reply{}, err
				}
				arn := described.Table.TableArn
				tag := types.Tag{Key: aws.String("team"), Value: aws.String("blue")}
				if _, err := client.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{tag}}); err != nil {
					return Reply{}, err
				}
				out, err := client.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
				if err != nil {
					return Reply{}, err
				}
				var detail string
				for _, tag := range out.Tags {
					detail += aws.ToString(tag.Key) + "=" + aws.ToString(tag.Value)
				}
				return Reply{Detail: detail}, nil
			}),
			Want: Reply{Detail: "team=blue"},
		},
	}
}

// elsewhere returns a copy of the case. The copy sends its request to a table that does not exist.
func (c Case) elsewhere() Case {
	request := c.When
	c.When = Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
		return request.send(ctx, target{client: client, table: table + "-none"})
	})
	return c
}

// refused wraps a request that the server must refuse. The method "send" returns an error if the
// server accepts the request.
type refused struct{ Request }

func (r refused) send(ctx context.Context, to target) (Reply, error) {
	if reply, err := r.Request.send(ctx, to); err == nil {
		return Reply{}, fmt.Errorf("a request that should fail returned %s", reply)
	}
	return Reply{}, nil
}
