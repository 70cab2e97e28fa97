package localdynamo_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// newScanned returns an engine with 200 items of about 1 KB in "locks".
func newScanned(t *testing.T) (*localdynamo.Engine, *dynamodb.Client) {
	e := localdynamo.New()
	client := newTable(t, e)
	for i := range 200 {
		item := key(fmt.Sprintf("item-%03d", i))
		item["n"], item["pad"] = number(i), text(strings.Repeat("x", 1000))
		lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
	}
	return e, client
}

func TestScanPagesAndSegmentsReturnEveryItemOnce(t *testing.T) {
	_, client := newScanned(t)
	for _, test := range []struct{ segments, limit int32 }{{1, 7}, {1, 200}, {3, 0}, {7, 5}, {64, 1}} {
		seen := map[int]int{}
		for segment := range test.segments {
			in := &dynamodb.ScanInput{TableName: aws.String("locks"), Segment: aws.Int32(segment), TotalSegments: aws.Int32(test.segments)}
			if test.limit > 0 {
				in.Limit = aws.Int32(test.limit)
			}
			for pages := dynamodb.NewScanPaginator(client, in); pages.HasMorePages(); {
				page := lab.Must(pages.NextPage(t.Context()))(t)
				for _, item := range page.Items {
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

func TestScanPageEndsAtOneMegabyte(t *testing.T) {
	e := localdynamo.New()
	client := newTable(t, e)
	for i := range 12 {
		item := key(strconv.Itoa(i))
		item["pad"] = text(strings.Repeat("x", 200_000))
		lab.Must(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks"), Select: types.SelectCount})
	if err != nil || out.Count < 5 || out.Count > 6 || out.LastEvaluatedKey == nil {
		t.Errorf("a page has %d items of 200 KB, goes on at %v; %v", out.Count, out.LastEvaluatedKey, err)
	}
}

func TestFilteredItemsStillCountAsRead(t *testing.T) {
	_, client := newScanned(t)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: aws.String("locks"), FilterExpression: aws.String("n < :n"), ProjectionExpression: aws.String("n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(10)}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || out.Count != 10 || out.ScannedCount != 200 || len(out.Items[0]) != 1 {
		t.Errorf("%d of %d items, the first %v; %v", out.Count, out.ScannedCount, out.Items[0], err)
	}
	if units := *out.ConsumedCapacity.CapacityUnits; units != 25 { // 200 items of 1,016 bytes are 50 blocks of 4 KB, at half a unit each
		t.Errorf("it took %v units", units)
	}
}

func TestQueryReturnsPartitionInOrderOfSortKey(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		newTable(t, e)
		want(t, e, "DeleteTable", `{"TableName":"none"}`, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found: Table: none not found"}`)
		if status, body := call(t, e, "CreateTable", `{"TableName":"sorted","KeySchema":[{"AttributeName":"h","KeyType":"HASH"},{"AttributeName":"r","KeyType":"RANGE"}],
			"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"},{"AttributeName":"r","AttributeType":"N"}],"BillingMode":"PAY_PER_REQUEST"}`); status != http.StatusOK {
			t.Fatal(body)
		}
		for _, r := range []string{"10", "9", "-5", "0", "100", "-50", "1.5", "0.001", "-0.001"} {
			for _, h := range []string{"a", "b"} {
				call(t, e, "PutItem", `{"TableName":"sorted","Item":{"h":{"S":"`+h+`"},"r":{"N":"`+r+`"}}}`)
			}
		}
		for _, test := range []struct{ condition, more, want string }{
			{"h = :h", ``, "-50 -5 -0.001 0 0.001 1.5 9 10 100"},
			{"h = :h", `,"ScanIndexForward":false`, "100 10 9 1.5 0.001 0 -0.001 -5 -50"},
			{"h = :h", `,"ScanIndexForward":false,"Limit":2`, "100 10 ..."},
			{"h = :h", `,"Limit":9`, "-50 -5 -0.001 0 0.001 1.5 9 10 100 ..."},
			{"h = :h", `,"ExclusiveStartKey":{"h":{"S":"a"},"r":{"N":"9"}}`, "10 100"},
			{"h = :h", `,"ScanIndexForward":false,"ExclusiveStartKey":{"h":{"S":"a"},"r":{"N":"-0.001"}}`, "-5 -50"},
			{"h = :h AND r > :x", ``, "1.5 9 10 100"},
			{"h = :h AND r >= :x", ``, "0.001 1.5 9 10 100"},
			{"h = :h AND r < :x", ``, "-50 -5 -0.001 0"},
			{"r <= :x AND h = :h", ``, "-50 -5 -0.001 0 0.001"},
			{":h = h AND :x < r", ``, "1.5 9 10 100"},
			{"h = :h AND r = :x", ``, "0.001"},
			{"(h = :h) AND (r BETWEEN :x AND :y)", ``, "0.001 1.5 9"},
		} {
			values := `":h":{"S":"a"}`
			for placeholder, n := range map[string]string{":x": "0.001", ":y": "9"} {
				if strings.Contains(test.condition, placeholder) {
					values += `,"` + placeholder + `":{"N":"` + n + `"}`
				}
			}
			_, body := call(t, e, "Query", `{"TableName":"sorted","KeyConditionExpression":"`+test.condition+`","ExpressionAttributeValues":{`+values+`}`+test.more+`}`)
			var out struct {
				Items            []struct{ H, R struct{ S, N string } }
				LastEvaluatedKey map[string]any
			}
			lab.OK(t, json.Unmarshal([]byte(body), &out))
			var got []string
			for _, item := range out.Items {
				if item.H.S != "a" {
					t.Errorf("%s%s met another partition", test.condition, test.more)
				}
				got = append(got, item.R.N)
			}
			if out.LastEvaluatedKey != nil {
				got = append(got, "...")
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s%s\n got %s\nwant %s", test.condition, test.more, strings.Join(got, " "), test.want)
			}
		}
	})
}

func TestQueryMatchesPrefixOfTextSortKey(t *testing.T) {
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
