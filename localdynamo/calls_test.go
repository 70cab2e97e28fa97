package localdynamo_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// seed is the PutItem request for the item that exists before each call under test.
const seed = `{"TableName":"locks","Item":{"id":{"S":"a"},"n":{"N":"5"},"s":{"SS":["b","a"]},
	"l":{"L":[{"S":"1"},{"S":"2"},{"S":"3"}]},"m":{"M":{"x":{"S":"q"},"y":{"L":[{"N":"1"},{"N":"2"}]}}}}}`

// newSeeded returns an engine whose table "locks" contains the item of seed.
func newSeeded(t *testing.T) *localdynamo.Engine {
	e := localdynamo.New()
	newTable(t, e)
	want(t, e, "PutItem", seed, `{}`)
	return e
}

// invalid returns the expected reply to an invalid request: a ValidationException with this
// message.
func invalid(message string) string {
	return `{"__type":"com.amazon.coral.validate#ValidationException","message":"` + strings.ReplaceAll(message, `"`, `\"`) + `"}`
}

// update returns an UpdateItem request for the item of seed, with the given expression and values.
func update(expression, values string) string {
	if values != "" {
		values = `,"ExpressionAttributeValues":{` + values + `}`
	}
	return `{"TableName":"locks","Key":{"id":{"S":"a"}},"UpdateExpression":"` + expression + `"` + values + `}`
}

const (
	failed       = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`
	wrongPath    = "The document path provided in the update expression is invalid for update"
	wrongOperand = "An operand in the update expression has an incorrect data type"
)

// The tests of internal/conformance cover every comparator and function. This test adds operands
// of the wrong type, and list elements that do not exist.
func TestConditionOnMissingOrWronglyTypedValueIsFalse(t *testing.T) {
	for _, test := range []struct{ condition, value, reply string }{
		{"m.y[2] = :v", `{"N":"2"}`, failed},
		{"n.x = :v", `{"S":"q"}`, failed},
		{"l.x = :v", `{"S":"q"}`, failed},
		{"contains(s, :v)", `{"N":"1"}`, failed},
		{"contains(n, :v)", `{"N":"5"}`, failed},
		{"NOT nope = :v", `{"S":"q"}`, `{}`},
	} {
		want(t, newSeeded(t), "DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"`+test.condition+
			`","ExpressionAttributeValues":{":v":`+test.value+`}}`, test.reply)
	}
}

func TestUpdateItemReturnsOnlyChangedPathsInUpdatedNewMode(t *testing.T) {
	for _, test := range []struct{ update, values, updated string }{
		{"SET n = :v - n", `":v":{"N":"0.5"}`, `{"n":{"N":"-4.5"}}`},
		{"SET m.x = :v, m.z = :v", `":v":{"N":"1"}`, `{"m":{"M":{"x":{"N":"1"},"z":{"N":"1"}}}}`},
		{"ADD m.c :v", `":v":{"N":"7"}`, `{"m":{"M":{"c":{"N":"7"}}}}`},
		{"DELETE c :v SET n = :n", `":v":{"SS":["b"]},":n":{"NULL":true}`, `{"n":{"NULL":true}}`},
	} {
		e := newSeeded(t)
		want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"UpdateExpression":"`+test.update+`","ReturnValues":"UPDATED_NEW","ExpressionAttributeValues":{`+test.values+`}}`,
			`{"Attributes":`+test.updated+`}`)
	}
}

func TestUpdateExpressionUsesListPositionsFromBeforeUpdate(t *testing.T) {
	for _, test := range []struct{ update, list string }{
		{"REMOVE l[0], l[1]", `[{"S":"3"}]`},
		{"REMOVE l[1], l[0]", `[{"S":"3"}]`},
		{"REMOVE l[0] SET l[2] = :v", `[{"S":"2"},{"S":"v"}]`},
		{"SET l[0] = l[2], l[2] = l[0]", `[{"S":"3"},{"S":"2"},{"S":"1"}]`},
	} {
		e := newSeeded(t)
		want(t, e, "UpdateItem", update(test.update, strings.Repeat(`":v":{"S":"v"}`, strings.Count(test.update, ":v"))), `{}`)
		want(t, e, "GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ProjectionExpression":"l"}`, `{"Item":{"l":{"L":`+test.list+`}}}`)
	}
	e := newSeeded(t)
	want(t, e, "PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"},"l":{"L":[{"S":"1"},{"L":[{"S":"2"},{"S":"3"}]}]}}}`, `{}`)
	want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"b"}},"UpdateExpression":"REMOVE l[0], l[1][0]","ReturnValues":"ALL_NEW"}`, `{"Attributes":{"id":{"S":"b"},"l":{"L":[{"L":[{"S":"3"}]}]}}}`)
}

func TestRejectedUpdateLeavesItemUnchanged(t *testing.T) {
	number := `":v":{"N":"1"}`
	for _, test := range []struct{ update, values, message string }{
		{"SET l.y = :v", number, wrongPath},
		{"SET l[5].y = :v", number, wrongPath},
		{"REMOVE m.z.z", ``, wrongPath},
		{"SET l[5] = :l, l[3][7] = :v", number + `,":l":{"L":[]}`, wrongPath},
		{"ADD s :v", number, wrongOperand},
		{"DELETE n :v", number, "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND"},
		{"SET c = :v", `":v":{}`, "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :v"},
	} {
		e := newSeeded(t)
		want(t, e, "UpdateItem", update(test.update, test.values), invalid(test.message))
		want(t, e, "PutItem", strings.Replace(seed, `"TableName"`, `"ReturnValues":"ALL_OLD","TableName"`, 1), `{"Attributes":{"id":{"S":"a"},"n":{"N":"5"},"s":{"SS":["a","b"]},
			"l":{"L":[{"S":"1"},{"S":"2"},{"S":"3"}]},"m":{"M":{"x":{"S":"q"},"y":{"L":[{"N":"1"},{"N":"2"}]}}}}}`)
	}
}

func TestEngineSaysWhyRequestIsInvalid(t *testing.T) {
	for _, test := range []struct{ operation, body, message string }{
		{"GetItem", `{"TableName":"locks"}`, "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null"},
		{"GetItem", `{"Key":{"id":{"S":"a"}}}`, "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"},
		{"GetItem", `{"TableName":"a","Key":{"id":{"S":"a"}}}`, "1 validation error detected: Value 'a' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{"GetItem", `{"TableName":"a;;;","Key":{"id":{"S":"a"}}}`, "1 validation error detected: Value 'a;;;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"AttributesToGet":["id"]}`, "localdynamo does not support the legacy parameters {AttributesToGet}: use expressions"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"a"},"` + strings.Repeat("n", 1<<16) + `":{"S":"a"}}}`, "1 validation error detected: a name of 65536 bytes in a map failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 65535, Member must have length greater than or equal to 0]"},
		{"TransactWriteItems", `{"ClientRequestToken":"","TransactItems":[{"Delete":{"TableName":"locks","Key":{"id":{"S":"b"}}}}]}`, "1 validation error detected: Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"}},"ReturnValues":"X"}`, "1 validation error detected: Value 'X' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"}},"ExpressionAttributeValues":{":v":{"S":"x"}}}`, "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"#n = n","ExpressionAttributeNames":{"#n":"n"}}`, "Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_type(n, :t)","ExpressionAttributeValues":{":t":{"S":"x"}}}`, "Invalid ConditionExpression: Invalid attribute type name found; type: x, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"},
		{"Query", `{"TableName":"locks","IndexName":"i","KeyConditionExpression":"id = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "The table does not have the specified index: i"},
		{"Scan", `{"TableName":"locks","Limit":0}`, "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"BatchWriteItem", `{"RequestItems":{"locks":[` + strings.TrimSuffix(strings.Repeat(`{"DeleteRequest":{"Key":{"id":{"S":"b"}}}},`, 25), ",") + `],"other":[{}]}}`, "Too many items requested for the BatchWriteItem call"},
		{"TransactWriteItems", `{"TransactItems":[{"Update":{"TableName":"locks","Key":{"id":{"S":"b"}},"UpdateExpression":"SET a = = b"}}]}`, `Invalid UpdateExpression: Syntax error; token: "=", near: "= = b"`},
		{"CreateTable", `{"TableName":"indexed","KeySchema":[{"AttributeName":"h","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST","GlobalSecondaryIndexes":[{}]}`, "localdynamo does not support secondary indexes: create the table without them, or use DynamoDB Local"},
		{"CreateTable", `{"TableName":"keyless","KeySchema":[{"AttributeName":"h","KeyType":"RANGE"}],"AttributeDefinitions":[],"BillingMode":"PAY_PER_REQUEST"}`, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
	} {
		want(t, newSeeded(t), test.operation, test.body, invalid(test.message))
	}
}

func TestTransactionWithInvalidKeyIsCancelled(t *testing.T) {
	e := newSeeded(t)
	want(t, e, "TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"locks","Item":{"id":{"S":"b"}}}},{"Delete":{"TableName":"locks","Key":{"id":{"N":"1"}}}}]}`,
		`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
		"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]",
		"CancellationReasons":[{"Code":"None"},{"Code":"ValidationError","Message":"The provided key element does not match the schema"}]}`)
	want(t, e, "GetItem", `{"TableName":"locks","Key":{"id":{"S":"b"}}}`, `{}`)
}

func TestConsumedCapacityMatchesDynamoDB(t *testing.T) {
	for _, test := range []struct{ operation, body, reply string }{
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConsistentRead":true,"ReturnConsumedCapacity":"INDEXES"}`, `"ConsumedCapacity":{"TableName":"locks","CapacityUnits":1.0,"Table":{"CapacityUnits":1.0}}`},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ReturnConsumedCapacity":"NONE"}`, ``},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"locks","Item":{"id":{"S":"b"},"x":{"S":"` + strings.Repeat("x", 3000) + `"}}}}],"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":6.0,"WriteCapacityUnits":6.0}]`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"locks","Key":{"id":{"S":"a"}}}},{"Get":{"TableName":"locks","Key":{"id":{"S":"z"}}}}],"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":4.0,"ReadCapacityUnits":4.0}]`},
		{"BatchGetItem", `{"RequestItems":{"locks":{"Keys":[{"id":{"S":"a"}},{"id":{"S":"z"}}]}},"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":1.0}]`},
	} {
		_, body := call(t, newSeeded(t), test.operation, test.body)
		if at := strings.Index(body, `"ConsumedCapacity"`); at < 0 && test.reply != "" || at >= 0 && body[at:] != test.reply+"}" {
			t.Errorf("%s %.120s\n got %s\nwant %s", test.operation, test.body, body, test.reply)
		}
	}
}

func TestClientRequestTokenPreventsSecondWriteForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSeeded(t)
		for _, step := range []struct {
			after time.Duration
			n     string
		}{{0, "6"}, {10*time.Minute - time.Second, "6"}, {2 * time.Second, "7"}} {
			time.Sleep(step.after)
			want(t, e, "TransactWriteItems", `{"ClientRequestToken":"token","TransactItems":[{"Update":{"TableName":"locks","Key":{"id":{"S":"a"}},
				"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}}]}`, `{}`)
			want(t, e, "GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ProjectionExpression":"n"}`, `{"Item":{"n":{"N":"`+step.n+`"}}}`)
		}
	})
}

func TestTableWithDeletionProtectionIsNotDeleted(t *testing.T) {
	e := newSeeded(t)
	call(t, e, "UpdateTable", `{"TableName":"locks","DeletionProtectionEnabled":true}`)
	status, body := call(t, e, "DeleteTable", `{"TableName":"locks"}`)
	lab.Want(t, "status of "+body, status, http.StatusBadRequest)
	want(t, e, "ListTables", `{}`, `{"TableNames":["locks"]}`)
}

func TestTagOfTableIsListedUntilRemoved(t *testing.T) {
	e := newSeeded(t)
	const arn = `"ResourceArn":"arn:aws:dynamodb:local:000000000000:table/locks"`
	call(t, e, "TagResource", `{`+arn+`,"Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}]}`)
	call(t, e, "UntagResource", `{`+arn+`,"TagKeys":["a"]}`)
	want(t, e, "ListTagsOfResource", `{`+arn+`}`, `{"Tags":[{"Key":"b","Value":"2"}]}`)
}

func TestItemsExcludedByFilterConsumeReadCapacity(t *testing.T) {
	client := newTable(t, localdynamo.New())
	for i := range 200 {
		put(t, client, fmt.Sprintf("item-%03d", i), map[string]types.AttributeValue{"n": number(i), "pad": text(strings.Repeat("x", 1000))})
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: aws.String("locks"), FilterExpression: aws.String("n < :n"), ProjectionExpression: aws.String("n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(10)}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || out.Count != 10 || out.ScannedCount != 200 || len(out.Items[0]) != 1 {
		t.Errorf("%d of %d items, the first %v; %v", out.Count, out.ScannedCount, out.Items[0], err)
	}
	if units := *out.ConsumedCapacity.CapacityUnits; units != 25 { // 200 items of 1,016 bytes are 50 blocks of 4 KB, and each block costs half a unit
		t.Errorf("the scan consumed %v units", units)
	}
}

func TestUnprocessedKeysCanBeSentAsNextBatchGetItem(t *testing.T) {
	client := newTable(t, localdynamo.New())
	all := types.KeysAndAttributes{ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#n"), ExpressionAttributeNames: map[string]string{"#n": "n"}}
	for i := range 45 { // 42 of these items fit on a page of 16 MB
		put(t, client, fmt.Sprint(i), map[string]types.AttributeValue{"n": number(i), "rest": text(strings.Repeat("x", 390<<10))})
		all.Keys = append(all.Keys, key(fmt.Sprint(i)))
	}
	var left []int
	for ask := map[string]types.KeysAndAttributes{"locks": all}; len(ask) > 0; {
		out := lab.Must(client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: ask}))(t)
		for _, item := range out.Responses["locks"] {
			if len(item) != 1 || item["n"] == nil {
				t.Fatalf("an item has %d attributes", len(item))
			}
		}
		ask = out.UnprocessedKeys
		left = append(left, len(ask["locks"].Keys))
	}
	lab.Want(t, "keys that each reply left", fmt.Sprint(left), "[3 0]")
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

func TestListTablesReturnsSortedNamesInPages(t *testing.T) {
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
