package localdynamo_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// BenchmarkConditionalUpdate measures a lock's renewal: one conditional UpdateItem through the
// real SDK. It runs with one worker, and with 32 workers that each use their own key. If
// LEASEHOLD_DYNOXIDE_ENDPOINT contains the address of a dynoxide server, the benchmark also
// measures that server, for comparison.
func BenchmarkConditionalUpdate(b *testing.B) {
	servers := map[string]func(*testing.B) *dynamodb.Client{
		"memory": func(b *testing.B) *dynamodb.Client { return newTable(b, localdynamo.New()) },
	}
	if endpoint := os.Getenv("LEASEHOLD_DYNOXIDE_ENDPOINT"); endpoint != "" {
		servers["dynoxide"] = func(b *testing.B) *dynamodb.Client { return newRemoteTable(b, endpoint) }
	}
	for name, newClient := range servers {
		for _, workers := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/%d", name, workers), func(b *testing.B) {
				client := newClient(b)
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for worker := range workers {
					wg.Go(func() {
						for n := 0; left.Add(-1) >= 0; n++ {
							if err := renew(client, strconv.Itoa(worker), n); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// newRemoteTable creates the same table as newTable, but on the server at endpoint. It
// returns a client with enough idle connections for all workers.
func newRemoteTable(b *testing.B, endpoint string) *dynamodb.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	client := dynamodb.New(dynamodb.Options{
		Region:       "us-east-1", // a Region that the SDK knows; for an unknown Region, the SDK evaluates a regular expression in each call
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
	_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String("locks")}) // an earlier run may have left the table
	createTable(b, client)
	return client
}

func renew(client *dynamodb.Client, key string, n int) error {
	last, next := strconv.Itoa(n-1), strconv.Itoa(n)
	_, err := client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName:           aws.String("locks"),
		Key:                 map[string]types.AttributeValue{"id": text("lock-" + key)},
		UpdateExpression:    aws.String("SET recordVersionNumber = :next, leaseDuration = :lease, ownerName = :owner, fencingToken = if_not_exists(fencingToken, :zero) + :one"),
		ConditionExpression: aws.String("attribute_not_exists(id) OR recordVersionNumber = :last AND ownerName = :owner AND attribute_not_exists(isReleased)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":next":  text(next),
			":last":  text(last),
			":lease": text("20000"),
			":owner": text("bench/0123456789abcdef"),
			":zero":  number(0),
			":one":   number(1),
		},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}
