package localdynamo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// newScanned returns a client of an engine whose table "locks" contains 200 items of about
// 1 KB.
func newScanned(t *testing.T) *dynamodb.Client {
	client := newTable(t, localdynamo.New())
	for i := range 200 {
		put(t, client, fmt.Sprintf("item-%03d", i), map[string]types.AttributeValue{"n": number(i), "pad": text(strings.Repeat("x", 1000))})
	}
	return client
}

func TestScanPagesAndSegmentsReturnEveryItemOnce(t *testing.T) {
	client := newScanned(t)
	for _, test := range []struct{ segments, limit int32 }{{1, 7}, {1, 200}, {3, 0}, {7, 5}, {64, 1}} {
		seen := map[int]int{}
		for segment := range test.segments {
			in := &dynamodb.ScanInput{TableName: aws.String("locks"), Segment: aws.Int32(segment), TotalSegments: aws.Int32(test.segments)}
			if test.limit > 0 {
				in.Limit = aws.Int32(test.limit)
			}
			for pages := dynamodb.NewScanPaginator(client, in); pages.HasMorePages(); {
				for _, item := range lab.Must(pages.NextPage(t.Context()))(t).Items {
					seen[numberIn(item, "n")]++
				}
			}
		}
		for n := range 200 {
			if seen[n] != 1 {
				t.Errorf("%d segments, pages of %d: item %d was met %d times", test.segments, test.limit, n, seen[n])
			}
		}
	}
}

func TestItemsExcludedByFilterConsumeReadCapacity(t *testing.T) {
	client := newScanned(t)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: aws.String("locks"), FilterExpression: aws.String("n < :n"), ProjectionExpression: aws.String("n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(10)}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || out.Count != 10 || out.ScannedCount != 200 || len(out.Items[0]) != 1 {
		t.Errorf("%d of %d items, the first %v; %v", out.Count, out.ScannedCount, out.Items[0], err)
	}
	if units := *out.ConsumedCapacity.CapacityUnits; units != 25 { // 200 items of 1,016 bytes are 50 blocks of 4 KB, and each block costs half a unit
		t.Errorf("it took %v units", units)
	}
}

func TestQueryMatchesPrefixOfStringSortKey(t *testing.T) {
	e := localdynamo.New()
	newTable(t, e)
	call(t, e, "CreateTable", `{"TableName":"texts","KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"r","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"B"},{"AttributeName":"r","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}`)
	for _, r := range []string{"a", "ab", `ab\u0000`, `ab\u0000c`, "abc", "b"} {
		call(t, e, "PutItem", `{"TableName":"texts","Item":{"h":{"B":"AAE="},"r":{"S":"`+r+`"}}}`)
	}
	for prefix, count := range map[string]int{"a": 5, "ab": 4, `ab\u0000`: 2, "abc": 1, "c": 0} {
		want(t, e, "Query", `{"TableName":"texts","Select":"COUNT","KeyConditionExpression":"h = :h AND begins_with(r, :p)","ExpressionAttributeValues":{":h":{"B":"AAE="},":p":{"S":"`+prefix+`"}}}`,
			fmt.Sprintf(`{"Count":%d,"ScannedCount":%d}`, count, count))
	}
}

func TestTablesAreListedInPages(t *testing.T) {
	e := localdynamo.New()
	newTable(t, e)
	for _, name := range []string{"zzz", "aaa"} {
		call(t, e, "CreateTable", `{"TableName":"`+name+`","KeySchema":[{"AttributeName":"h","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"B"}],"BillingMode":"PAY_PER_REQUEST"}`)
	}
	want(t, e, "ListTables", `{"Limit":2}`, `{"TableNames":["aaa","locks"],"LastEvaluatedTableName":"locks"}`)
	want(t, e, "ListTables", `{"Limit":2,"ExclusiveStartTableName":"locks"}`, `{"TableNames":["zzz"]}`)
	call(t, e, "DeleteTable", `{"TableName":"aaa"}`)
	want(t, e, "ListTables", `{}`, `{"TableNames":["locks","zzz"]}`)
}
