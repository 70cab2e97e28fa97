package localdynamo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// eachStore runs a test on an engine in memory and on one in a file.
func eachStore(t *testing.T, test func(*testing.T, *localdynamo.Engine)) {
	t.Run("memory", func(t *testing.T) { test(t, localdynamo.New()) })
	t.Run("file", func(t *testing.T) {
		store, err := boltstore.Open(filepath.Join(t.TempDir(), "locks.db"))
		if err != nil {
			t.Fatal(err)
		}
		test(t, localdynamo.New(localdynamo.WithStore(store)))
	})
}

// newTable returns a client of the engine with a table "locks" whose key is the
// string "id". The engine is closed when the test ends.
func newTable(tb testing.TB, e *localdynamo.Engine) *dynamodb.Client {
	tb.Helper()
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	client := e.Client()
	createTable(tb, client)
	return client
}

func createTable(tb testing.TB, client *dynamodb.Client) {
	tb.Helper()
	_, err := client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName:            aws.String("locks"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": text(id)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

// numberIn returns the number an item has under name, or -1.
func numberIn(item map[string]types.AttributeValue, name string) int {
	if v, ok := item[name].(*types.AttributeValueMemberN); ok {
		if n, err := strconv.Atoi(v.Value); err == nil {
			return n
		}
	}
	return -1
}

func increment(ctx context.Context, client *dynamodb.Client, id string) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("locks"),
		Key:                       key(id),
		UpdateExpression:          aws.String("SET n = if_not_exists(n, :zero) + :one"),
		ConditionExpression:       aws.String("attribute_not_exists(id) OR n >= :zero"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":zero": number(0), ":one": number(1)},
	})
	return err
}

func get(t *testing.T, client *dynamodb.Client, id string) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("locks"), Key: key(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// call sends a request as it is and returns the reply's status and body.
func call(t *testing.T, e *localdynamo.Engine, operation, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localdynamo/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	reply, err := e.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", operation, body, err)
	}
	defer func() { _ = reply.Body.Close() }()
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(answer)
}

// want calls and fails the test unless the reply is that JSON.
func want(t *testing.T, e *localdynamo.Engine, operation, body, reply string) {
	t.Helper()
	_, got := call(t, e, operation, body)
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%s %s\n got %s: %v", operation, body, got, err)
	}
	if err := json.Unmarshal([]byte(reply), &b); err != nil {
		t.Fatalf("%s: %v", reply, err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s %s\n got %s\nwant %s", operation, body, got, reply)
	}
}

func TestSixtyFourGoroutinesCountExactly(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		const goroutines, each = 64, 5
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range each {
					if err := increment(t.Context(), client, "k"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if n := numberIn(get(t, client, "k"), "n"); n != goroutines*each {
			t.Errorf("n = %d after %d increments", n, goroutines*each)
		}
	})
}

func TestTheSDKUnderstandsAFailedCondition(t *testing.T) {
	client := newTable(t, localdynamo.New())
	if err := increment(t.Context(), client, "k"); err != nil {
		t.Fatal(err)
	}
	put := &dynamodb.PutItemInput{
		TableName:                           aws.String("locks"),
		Item:                                key("k"),
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var failed *types.ConditionalCheckFailedException
	if _, err := client.PutItem(t.Context(), put); !errors.As(err, &failed) || numberIn(failed.Item, "n") != 1 {
		t.Errorf("with ALL_OLD: %v, item %v", err, failed)
	}
	put.ReturnValuesOnConditionCheckFailure = ""
	if _, err := client.PutItem(t.Context(), put); !errors.As(err, &failed) || failed.Item != nil {
		t.Errorf("without: %v, item %v", err, failed)
	}
}

func TestTheSDKUnderstandsACancelledTransaction(t *testing.T) {
	client := newTable(t, localdynamo.New())
	if err := increment(t.Context(), client, "taken"); err != nil {
		t.Fatal(err)
	}
	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("locks"), Item: key("new")}},
		{Put: &types.Put{
			TableName: aws.String("locks"), Item: key("taken"), ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
	}})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 {
		t.Fatalf("err = %v", err)
	}
	none, failed := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	if *none.Code != "None" || *failed.Code != "ConditionalCheckFailed" || numberIn(failed.Item, "n") != 1 {
		t.Errorf("reasons %v", cancelled.CancellationReasons)
	}
	if get(t, client, "new") != nil {
		t.Error("a part of a cancelled transaction was carried out")
	}
}

func TestAClientRequestTokenWritesOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		write := func(token, id string) error {
			_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String(token),
				TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("locks"), Key: key(id), UpdateExpression: aws.String("ADD n :one"),
					ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
				}}},
			})
			return err
		}
		for range 3 {
			if err := write("token", "k"); err != nil {
				t.Fatal(err)
			}
		}
		if n := numberIn(get(t, client, "k"), "n"); n != 1 {
			t.Errorf("n = %d after one request sent three times", n)
		}
		var mismatch *types.IdempotentParameterMismatchException
		if err := write("token", "other"); !errors.As(err, &mismatch) {
			t.Errorf("another request with the same token: %v", err)
		}
		if err := write("token2", "k"); err != nil || numberIn(get(t, client, "k"), "n") != 2 {
			t.Errorf("the same request with another token: %v", err)
		}
	})
}

func TestAClientRequestTokenIsForgottenAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTable(t, localdynamo.New())
		write := func() {
			_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				ClientRequestToken: aws.String("token"),
				TransactItems: []types.TransactWriteItem{{Update: &types.Update{
					TableName: aws.String("locks"), Key: key("k"), UpdateExpression: aws.String("ADD n :one"),
					ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
				}}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		write()
		time.Sleep(10*time.Minute - time.Second)
		write()
		if n := numberIn(get(t, client, "k"), "n"); n != 1 {
			t.Errorf("n = %d before ten minutes", n)
		}
		time.Sleep(2 * time.Second)
		write()
		if n := numberIn(get(t, client, "k"), "n"); n != 2 {
			t.Errorf("n = %d after ten minutes", n)
		}
	})
}

func TestTTLDeletesAnItemAnHourAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := localdynamo.New()
		client := newTable(t, e)
		put := func(id string, attributes map[string]types.AttributeValue) {
			for name, v := range key(id) {
				attributes[name] = v
			}
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: attributes}); err != nil {
				t.Fatal(err)
			}
		}
		now := int(time.Now().Unix())
		put("before", map[string]types.AttributeValue{"expiresAt": number(now + 60)}) // TTL is not on yet
		if _, err := client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String("locks"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expiresAt"), Enabled: aws.Bool(true)},
		}); err != nil {
			t.Fatal(err)
		}
		put("free", map[string]types.AttributeValue{"expiresAt": number(now + 60)})
		put("held", map[string]types.AttributeValue{"expiresAt": number(now + 60)})
		put("text", map[string]types.AttributeValue{"expiresAt": text(strconv.Itoa(now + 60))})
		put("ancient", map[string]types.AttributeValue{"expiresAt": number(now - 6*365*24*3600)})

		time.Sleep(time.Hour)
		if get(t, client, "free") == nil {
			t.Error("an item is gone less than an hour after its time")
		}
		put("held", map[string]types.AttributeValue{}) // no TTL attribute any more
		time.Sleep(2 * time.Minute)
		for id, want := range map[string]bool{"before": false, "free": false, "held": true, "text": true, "ancient": true} {
			if got := get(t, client, id) != nil; got != want {
				t.Errorf("%s is there: %v, want %v", id, got, want)
			}
		}
		// One whose place was taken again is not swept away with the old one.
		put("free", map[string]types.AttributeValue{})
		put("any", map[string]types.AttributeValue{})
		if get(t, client, "free") == nil {
			t.Error("the sweep took a new item for an expired one")
		}
		out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")})
		if err != nil || out.Count != 5 {
			t.Errorf("a scan sees %d items, %v", out.Count, err)
		}
		want(t, e, "DescribeTimeToLive", `{"TableName":"locks"}`, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expiresAt"}}`)
		described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("locks")})
		if err != nil || *described.Table.ItemCount != 5 {
			t.Errorf("after the sweep the table has %d items, %v", *described.Table.ItemCount, err)
		}
	})
}

func TestAnEngineIsFitForSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTable(t, localdynamo.New())
		start := time.Now()
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for range 100 {
					if err := increment(t.Context(), client, "k"); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Duration(worker+1) * time.Minute)
				}
			})
		}
		wg.Wait()
		if n := numberIn(get(t, client, "k"), "n"); n != 800 {
			t.Errorf("n = %d", n)
		}
		if took := time.Since(start); took != 800*time.Minute {
			t.Errorf("it took %v of the bubble's time", took)
		}
	})
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localdynamo/", strings.NewReader(`{"TableName":"locks","Item":{"id":{"S":"k"}}}`))
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		if reply, err := e.RoundTrip(r); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", reply, err)
		}
		if get(t, client, "k") != nil {
			t.Error("it wrote")
		}
	})
}

func TestAClosedEngineFails(t *testing.T) {
	e := localdynamo.New()
	client := newTable(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	if err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("err = %v", err)
	}
}

func TestAnEngineServesHTTP(t *testing.T) {
	e := localdynamo.New()
	newTable(t, e)
	for _, test := range []struct {
		target, body, want string
		status             int
	}{
		{"DynamoDB_20120810.ListTables", `{}`, `{"TableNames":["locks"]}`, http.StatusOK},
		{"DynamoDB_20120810.GetItem", `{"TableName":"nope","Key":{"id":{"S":"a"}}}`,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"}`, http.StatusBadRequest},
		{"", ``, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"no DynamoDB operation in the header X-Amz-Target"}`, http.StatusBadRequest},
		{"DynamoDB_20120810.Nope", ``, `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"localdynamo does not know the operation Nope"}`, http.StatusBadRequest},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(test.body))
		r.Header.Set("X-Amz-Target", test.target)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != test.status || w.Body.String() != test.want {
			t.Errorf("%s: %d %s", test.target, w.Code, w.Body)
		}
		if w.Header().Get("X-Amz-Crc32") == "" || w.Header().Get("Content-Type") != "application/x-amz-json-1.0" {
			t.Errorf("%s: headers %v", test.target, w.Header())
		}
	}
}

// newScanned returns an engine with 200 items of about 1 KB in "locks".
func newScanned(t *testing.T) (*localdynamo.Engine, *dynamodb.Client) {
	e := localdynamo.New()
	client := newTable(t, e)
	for i := range 200 {
		item := key(fmt.Sprintf("item-%03d", i))
		item["n"], item["pad"] = number(i), text(strings.Repeat("x", 1000))
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	return e, client
}

func TestPagesAndSegmentsOfAScanMeetEveryItemOnce(t *testing.T) {
	_, client := newScanned(t)
	for _, test := range []struct{ segments, limit int32 }{{1, 7}, {1, 200}, {3, 0}, {7, 5}, {64, 1}} {
		seen := map[int]int{}
		for segment := range test.segments {
			in := &dynamodb.ScanInput{TableName: aws.String("locks"), Segment: aws.Int32(segment), TotalSegments: aws.Int32(test.segments)}
			if test.limit > 0 {
				in.Limit = aws.Int32(test.limit)
			}
			for pages := dynamodb.NewScanPaginator(client, in); pages.HasMorePages(); {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
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

func TestAPageEndsAtAMegabyte(t *testing.T) {
	e := localdynamo.New()
	client := newTable(t, e)
	for i := range 12 {
		item := key(strconv.Itoa(i))
		item["pad"] = text(strings.Repeat("x", 200_000))
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks"), Select: types.SelectCount})
	if err != nil || out.Count < 5 || out.Count > 6 || out.LastEvaluatedKey == nil {
		t.Errorf("a page has %d items of 200 KB, goes on at %v; %v", out.Count, out.LastEvaluatedKey, err)
	}
}

func TestAFilterHidesItemsThatWereStillRead(t *testing.T) {
	_, client := newScanned(t)
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: aws.String("locks"), FilterExpression: aws.String("n < :n"), ProjectionExpression: aws.String("n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(10)}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || out.Count != 10 || out.ScannedCount != 200 || len(out.Items[0]) != 1 {
		t.Errorf("%d of %d items, the first %v; %v", out.Count, out.ScannedCount, out.Items[0], err)
	}
	if units := *out.ConsumedCapacity.CapacityUnits; units != 25 { // 200 x 1,016 bytes are 50 x 4 KB, at half a unit each
		t.Errorf("it took %v units", units)
	}
}

func TestAQueryGoesThroughAPartitionInTheOrderOfTheSortKey(t *testing.T) {
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
			if err := json.Unmarshal([]byte(body), &out); err != nil {
				t.Fatal(err)
			}
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

func TestATextSortKeyTakesAPrefix(t *testing.T) {
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

func TestADeletedTableTakesItsItemsAlong(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		if err := increment(t.Context(), client, "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("locks")}); err != nil {
			t.Fatal(err)
		}
		createTable(t, client)
		if get(t, client, "k") != nil {
			t.Error("a new table of the same name has the old one's item")
		}
	})
}

func TestAProtectedTableIsNotDeleted(t *testing.T) {
	e := localdynamo.New()
	client := newTable(t, e)
	if _, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("locks"), DeletionProtectionEnabled: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("locks")}); err == nil {
		t.Error("it was deleted")
	}
}

func TestTagsAreKept(t *testing.T) {
	client := newTable(t, localdynamo.New())
	arn := aws.String("arn:aws:dynamodb:local:000000000000:table/locks")
	if _, err := client.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{
		{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")},
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	out, err := client.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
	if err != nil || len(out.Tags) != 1 || *out.Tags[0].Key != "b" || *out.Tags[0].Value != "2" {
		t.Errorf("%v, %v", out.Tags, err)
	}
}

func TestARequestOverSixteenMegabytesIsRefused(t *testing.T) {
	e := localdynamo.New()
	newTable(t, e)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localdynamo/", bytes.NewReader(make([]byte, 17<<20)))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	reply, err := e.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil || reply.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, %v", reply.StatusCode, err)
	}
}
