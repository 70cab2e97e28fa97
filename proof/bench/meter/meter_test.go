package meter

import (
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The function "behind" returns a meter in front of a local DynamoDB server that has the table
// "locks". It also returns a client that sends its requests through the meter.
func behind(t *testing.T, distance time.Duration) (*Meter, *dynamodb.Client) {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	lab.OK(t, table.Create(t.Context(), engine.Client(), table.Spec{Name: "locks"}))
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	m := lab.Must(Start(server.URL, distance))(t)
	t.Cleanup(func() { _ = m.Close() })
	connections := awshttp.NewBuildableClient()
	t.Cleanup(connections.GetTransport().CloseIdleConnections)
	return m, dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(m.Endpoint), Region: "local", Retryer: aws.NopRetryer{}, HTTPClient: connections,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// put writes the item "k" on condition that it does not exist.
func put(t *testing.T, db *dynamodb.Client) error {
	return lab.ErrorOf(db.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("locks"), Item: item(),
		ConditionExpression: aws.String("attribute_not_exists(#k)"), ExpressionAttributeNames: map[string]string{"#k": "key"},
	}))
}

func item() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "k"}}
}

func TestMeterCountsRequestsAndCapacityUnits(t *testing.T) {
	m, db := behind(t, 0)
	used := func(what string, want Usage, do func() error) {
		t.Helper()
		before := m.Used()
		lab.OK(t, do())
		lab.Want(t, what, m.Used().Minus(before), want)
	}
	used("a write", Usage{Requests: 1, Writes: 1}, func() error { return put(t, db) })
	used("a write whose condition fails", Usage{Requests: 1, Writes: 1}, func() error {
		var failed *types.ConditionalCheckFailedException
		if err := put(t, db); !errors.As(err, &failed) {
			return fmt.Errorf("%w, want a failed condition", err)
		}
		return nil
	})
	for consistent, units := range map[bool]float64{true: 1, false: 0.5} {
		used("a read", Usage{Requests: 1, Reads: units}, func() error {
			return lab.ErrorOf(db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: item(), ConsistentRead: &consistent}))
		})
	}
	transact := func(condition *string) error {
		return lab.ErrorOf(db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("locks"), Item: item(), ConditionExpression: condition}}},
		}))
	}
	used("a transaction", Usage{Requests: 1, Writes: 2}, func() error { return transact(nil) })
	used("a transaction whose condition fails", Usage{Requests: 1, Writes: 2}, func() error {
		var cancelled *types.TransactionCanceledException
		if err := transact(aws.String("attribute_exists(absent)")); !errors.As(err, &cancelled) {
			return fmt.Errorf("%w, want a cancelled transaction", err)
		}
		return nil
	})
	used("DescribeTable", Usage{Requests: 1}, func() error {
		return lab.ErrorOf(db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")}))
	})
}

func TestMeterAddsConfiguredDelayToRequest(t *testing.T) {
	const distance = 30 * time.Millisecond
	_, db := behind(t, distance)
	began := time.Now()
	lab.OK(t, put(t, db))
	lab.WantRange(t, "time of the request", time.Since(began), distance, math.MaxInt64)
}
