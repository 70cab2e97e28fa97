package localdynamo_test

import (
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/localdynamo"
)

// seed is the PutItem request for the item with which the tests of single calls start.
const seed = `{"TableName":"locks","Item":{"id":{"S":"a"},"n":{"N":"5"},"s":{"SS":["b","a"]},
	"l":{"L":[{"S":"1"},{"S":"2"},{"S":"3"}]},"m":{"M":{"x":{"S":"q"},"y":{"L":[{"N":"1"},{"N":"2"}]}}}}}`

// newSeeded returns an engine with the seed in the table "locks".
func newSeeded(t *testing.T) *localdynamo.Engine {
	e := localdynamo.New()
	newTable(t, e)
	want(t, e, "PutItem", seed, `{}`)
	return e
}

// invalid returns the reply to a request that is refused.
func invalid(message string) string {
	return `{"__type":"com.amazon.coral.validate#ValidationException","message":"` + strings.ReplaceAll(message, `"`, `\"`) + `"}`
}

const (
	failed       = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`
	wrongPath    = "The document path provided in the update expression is invalid for update"
	wrongOperand = "An operand in the update expression has an incorrect data type"
)

func TestConditionsAreEvaluatedOnItem(t *testing.T) {
	values := map[string]string{
		":five": `{"N":"5.0"}`, ":one": `{"N":"1"}`, ":two": `{"N":"2"}`, ":six": `{"N":"6"}`, ":q": `{"S":"q"}`, ":a": `{"S":"a"}`,
		":set": `{"SS":["a","b"]}`, ":SS": `{"SS":["x"]}`, ":type": `{"S":"NS"}`, ":M": `{"S":"M"}`, ":empty": `{"S":""}`, ":three": `{"N":"3"}`,
	}
	for condition, holds := range map[string]bool{
		"n = :five":                         true,
		"n <> :five":                        false,
		"n < :six AND n > :one":             true,
		"n <= :five AND n >= :five":         true,
		"n BETWEEN :one AND :five":          true,
		"n BETWEEN :five AND :six":          true,
		"n BETWEEN :one AND :two":           false,
		"n IN (:one, :five)":                true,
		"n IN (:one, :six)":                 false,
		"n = :q":                            false,
		"n <> :q":                           true,
		"n < :q":                            false,
		"nope = :q":                         false,
		"nope <> :q":                        true,
		"NOT nope = :q":                     true,
		"nope < :q":                         false,
		"s = :set":                          true,
		"m.x = :q":                          true,
		"m.y[1] = :two":                     true,
		"m.y[2] = :two":                     false,
		"n.x = :q":                          false,
		"l.x = :q":                          false,
		"attribute_exists(m.x)":             true,
		"attribute_exists(m.z)":             false,
		"attribute_not_exists(l[3])":        true,
		"attribute_type(m, :M)":             true,
		"attribute_type(n, :type)":          false,
		"attribute_type(nope, :type)":       false,
		"begins_with(id, :a)":               true,
		"begins_with(id, :empty)":           true,
		"begins_with(id, :q)":               false,
		"begins_with(n, :a)":                false,
		"contains(s, :a)":                   true,
		"contains(s, :q)":                   false,
		"contains(s, :one)":                 false,
		"contains(id, :a)":                  true,
		"contains(m.y, :two)":               true,
		"contains(n, :five)":                false,
		"size(l) = :three":                  true,
		"size(s) = :two":                    true,
		"size(m) = :two":                    true,
		"size(id) = :one":                   true,
		"size(n) = :one":                    false,
		"n = :one OR n = :five":             true,
		"n = :five OR n = :six AND n = :q":  true,
		"(n = :five OR n = :six) AND n=:q":  false,
		"NOT (n = :one)":                    true,
		"attribute_exists(id) AND NOT :a=n": true,
	} {
		t.Run(condition, func(t *testing.T) {
			e := newSeeded(t)
			var used []string
			for placeholder, value := range values {
				if strings.Contains(condition+" ", placeholder+" ") || strings.Contains(condition, placeholder+")") || strings.Contains(condition, placeholder+",") || strings.Contains(condition, placeholder+"=") {
					used = append(used, `"`+placeholder+`":`+value)
				}
			}
			given := ""
			if len(used) > 0 {
				given = `,"ExpressionAttributeValues":{` + strings.Join(used, ",") + `}`
			}
			reply := failed
			if holds {
				reply = `{}`
			}
			want(t, e, "DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"`+condition+`"`+given+`}`, reply)
		})
	}
}

func TestUpdateExpressionsChangeNamedAttributes(t *testing.T) {
	for _, test := range []struct{ update, values, updated string }{
		{"SET n = n + :v", `":v":{"N":"1"}`, `{"n":{"N":"6"}}`},
		{"SET n = :v - n", `":v":{"N":"0.5"}`, `{"n":{"N":"-4.5"}}`},
		{"SET c = if_not_exists(c, :v) + :v", `":v":{"N":"1"}`, `{"c":{"N":"2"}}`},
		{"SET n = if_not_exists(n, :v) + :v", `":v":{"N":"1"}`, `{"n":{"N":"6"}}`},
		{"SET l = list_append(l, :v)", `":v":{"L":[{"N":"4"}]}`, `{"l":{"L":[{"S":"1"},{"S":"2"},{"S":"3"},{"N":"4"}]}}`},
		{"SET l = list_append(:v, l)", `":v":{"L":[{"N":"0"}]}`, `{"l":{"L":[{"N":"0"},{"S":"1"},{"S":"2"},{"S":"3"}]}}`},
		{"SET c = n, n = :v", `":v":{"N":"1"}`, `{"c":{"N":"5"},"n":{"N":"1"}}`},
		{"SET m.x = :v, m.z = :v", `":v":{"N":"1"}`, `{"m":{"M":{"x":{"N":"1"},"z":{"N":"1"}}}}`},
		{"SET m.y[0] = :v", `":v":{"N":"9"}`, `{"m":{"M":{"y":{"L":[{"N":"9"}]}}}}`},
		{"REMOVE n SET c = :v", `":v":{"BOOL":true}`, `{"c":{"BOOL":true}}`},
		{"ADD n :v", `":v":{"N":"-7"}`, `{"n":{"N":"-2"}}`},
		{"ADD c :v", `":v":{"N":"7"}`, `{"c":{"N":"7"}}`},
		{"ADD m.c :v", `":v":{"N":"7"}`, `{"m":{"M":{"c":{"N":"7"}}}}`},
		{"ADD s :v", `":v":{"SS":["c","a"]}`, `{"s":{"SS":["a","b","c"]}}`},
		{"DELETE s :v", `":v":{"SS":["b","z"]}`, `{"s":{"SS":["a"]}}`},
		{"DELETE c :v SET n = :n", `":v":{"SS":["b"]},":n":{"NULL":true}`, `{"n":{"NULL":true}}`},
	} {
		e := newSeeded(t)
		want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"UpdateExpression":"`+test.update+`","ReturnValues":"UPDATED_NEW","ExpressionAttributeValues":{`+test.values+`}}`,
			`{"Attributes":`+test.updated+`}`)
	}
}

func TestListUpdateUsesIndexesOfOldList(t *testing.T) {
	for _, test := range []struct{ update, list string }{
		{"REMOVE l[0], l[1]", `[{"S":"3"}]`},
		{"REMOVE l[1], l[0]", `[{"S":"3"}]`},
		{"REMOVE l[7]", `[{"S":"1"},{"S":"2"},{"S":"3"}]`},
		{"REMOVE l[0] SET l[2] = :v", `[{"S":"2"},{"S":"v"}]`},
		{"SET l[9] = :v, l[7] = :w", `[{"S":"1"},{"S":"2"},{"S":"3"},{"S":"w"},{"S":"v"}]`},
		{"SET l[0] = l[2], l[2] = l[0]", `[{"S":"3"},{"S":"2"},{"S":"1"}]`},
	} {
		e := newSeeded(t)
		values := ""
		if strings.Contains(test.update, ":v") {
			values = `,"ExpressionAttributeValues":{":v":{"S":"v"}}`
		}
		if strings.Contains(test.update, ":w") {
			values = `,"ExpressionAttributeValues":{":v":{"S":"v"},":w":{"S":"w"}}`
		}
		want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"UpdateExpression":"`+test.update+`"`+values+`}`, `{}`)
		want(t, e, "GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ProjectionExpression":"l"}`, `{"Item":{"l":{"L":`+test.list+`}}}`)
	}
	e := newSeeded(t)
	want(t, e, "PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"},"l":{"L":[{"S":"1"},{"L":[{"S":"2"},{"S":"3"}]}]}}}`, `{}`)
	want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"b"}},"UpdateExpression":"REMOVE l[0], l[1][0]","ReturnValues":"ALL_NEW"}`, `{"Attributes":{"id":{"S":"b"},"l":{"L":[{"L":[{"S":"3"}]}]}}}`)
}

func TestImpossibleUpdateIsRejectedAndChangesNothing(t *testing.T) {
	number := `":v":{"N":"1"}`
	for _, test := range []struct{ update, values, message string }{
		{"SET x.y = :v", number, wrongPath},
		{"SET n.y = :v", number, wrongPath},
		{"SET l.y = :v", number, wrongPath},
		{"SET m[0] = :v", number, wrongPath},
		{"SET l[5].y = :v", number, wrongPath},
		{"REMOVE x.y", ``, wrongPath},
		{"REMOVE m.z.z", ``, wrongPath},
		{"ADD x.y :v", number, wrongPath},
		{"SET c = id + :v", number, wrongOperand},
		{"SET c = list_append(n, l)", ``, wrongOperand},
		{"ADD s :v", number, wrongOperand},
		{"DELETE n :v", `":v":{"SS":["a"]}`, wrongOperand},
		{"SET c = z", ``, "The provided expression refers to an attribute that does not exist in the item"},
		{"SET c = n + :v", `":v":{"S":"x"}`, "Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"ADD n :v", `":v":{"S":"x"}`, "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"},
		{"DELETE n :v", number, "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND"},
		{"SET id = :v", number, "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"},
		{"SET c = :v, c = :v", number, "Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [c], path two: [c]"},
		{"SET c = :v", `":v":{"N":"1"},":w":{"N":"1"}`, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"},
		{"SET c = :w", number, "Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :w"},
		{"SET #c = :v", number, "Invalid UpdateExpression: An expression attribute name used in the document path is not defined; attribute name: #c"},
		{"SET n = n + :v", `":v":{"N":"0.` + strings.Repeat("0", 40) + `1"}`, "Attempting to store more than 38 significant digits in a Number"},
		{"SET n = n + :v", `":v":{"N":"` + strings.Repeat("1", 39) + `"}`, "ExpressionAttributeValues contains invalid value: Attempting to store more than 38 significant digits in a Number for key :v"},
		{"SET c = :v", `":v":{}`, "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes for key :v"},
		{"SET c = :v", `"v":{"N":"1"}`, `ExpressionAttributeValues contains invalid key: Syntax error; key: "v"`},
		{"SET c = :v", `":v":{"S":"` + strings.Repeat("x", 409600) + `"}`, "Item size to update has exceeded the maximum allowed size"},
	} {
		e := newSeeded(t)
		given := ""
		if test.values != "" {
			given = `,"ExpressionAttributeValues":{` + test.values + `}`
		}
		want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"UpdateExpression":"`+test.update+`"`+given+`}`, invalid(test.message))
		want(t, e, "PutItem", strings.Replace(seed, `"TableName"`, `"ReturnValues":"ALL_OLD","TableName"`, 1), `{"Attributes":{"id":{"S":"a"},"n":{"N":"5"},"s":{"SS":["a","b"]},
			"l":{"L":[{"S":"1"},{"S":"2"},{"S":"3"}]},"m":{"M":{"x":{"S":"q"},"y":{"L":[{"N":"1"},{"N":"2"}]}}}}}`)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	long := strings.Repeat("x", 2049)
	for _, test := range []struct{ operation, body, message string }{
		{"GetItem", `{"TableName":"locks","Key":{}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"N":"1"}}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"},"x":{"S":"a"}}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":""}}}`, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"` + long + `"}}}`, "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{"GetItem", `{"TableName":"locks"}`, "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null"},
		{"GetItem", `{"Key":{"id":{"S":"a"}}}`, "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"},
		{"GetItem", `{"TableName":"a","Key":{"id":{"S":"a"}}}`, "1 validation error detected: Value 'a' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{"GetItem", `{"TableName":"a;;;","Key":{"id":{"S":"a"}}}`, "1 validation error detected: Value 'a;;;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"AttributesToGet":["id"]}`, "localdynamo does not support the legacy parameters {AttributesToGet}: use expressions"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ExpressionAttributeNames":{"#a":"b"}}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ProjectionExpression":"n, n"}`, "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [n], path two: [n]"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"a"},"` + strings.Repeat("n", 1<<16) + `":{"S":"a"}}}`, "1 validation error detected: a name of 65536 bytes in a map failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 65535, Member must have length greater than or equal to 0]"},
		{"TransactWriteItems", `{"ClientRequestToken":"","TransactItems":[{"Delete":{"TableName":"locks","Key":{"id":{"S":"b"}}}}]}`, "1 validation error detected: Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"PutItem", `{"TableName":"locks","Item":{"x":{"S":"a"}}}`, "One or more parameter values were invalid: Missing the key id in the item"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"N":"1"}}}`, "One or more parameter values were invalid: Type mismatch for key id expected: S actual: N"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":""}}}`, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"},"x":{"S":"` + strings.Repeat("x", 409600) + `"}}}`, "Item size has exceeded the maximum allowed size"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"}},"ReturnValues":"ALL_NEW"}`, "ReturnValues can only be ALL_OLD or NONE"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"}},"ReturnValues":"X"}`, "1 validation error detected: Value 'X' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"}},"ExpressionAttributeValues":{":v":{"S":"x"}}}`, "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"},
		{"UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"b"}},"UpdateExpression":"SET x = y","ExpressionAttributeValues":{}}`, "ExpressionAttributeValues must not be empty"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"name = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"begins_with(n, :v)","ExpressionAttributeValues":{":v":{"N":"1"}}}`, "Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"n BETWEEN :b AND :a","ExpressionAttributeValues":{":a":{"N":"1"},":b":{"N":"2"}}}`, "Invalid ConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"#n = n","ExpressionAttributeNames":{"#n":"n"}}`, "Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"m < :m","ExpressionAttributeValues":{":m":{"M":{}}}}`, "Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: <, operand type: M"},
		{"DeleteItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_type(n, :t)","ExpressionAttributeValues":{":t":{"S":"x"}}}`, "Invalid ConditionExpression: Invalid attribute type name found; type: x, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"},
		{"Query", `{"TableName":"locks"}`, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{"Query", `{"TableName":"locks","KeyConditionExpression":"id > :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "Query key condition not supported"},
		{"Query", `{"TableName":"locks","KeyConditionExpression":"x = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "Query condition missed key schema element: id"},
		{"Query", `{"TableName":"locks","KeyConditionExpression":"id = :v OR x = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "Invalid operator used in KeyConditionExpression: OR"},
		{"Query", `{"TableName":"locks","KeyConditionExpression":"id = :v AND id = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "KeyConditionExpressions must only contain one condition per key"},
		{"Query", `{"TableName":"locks","KeyConditionExpression":"id = :v","ExpressionAttributeValues":{":v":{"N":"1"}}}`, "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{"Query", `{"TableName":"locks","KeyConditionExpression":"id = :v","FilterExpression":"id <> :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "Filter Expression can only contain non-primary key attributes: Primary key attribute: id"},
		{"Query", `{"TableName":"locks","IndexName":"i","KeyConditionExpression":"id = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, "The table does not have the specified index: i"},
		{"Scan", `{"TableName":"locks","Segment":2,"TotalSegments":2}`, "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than TotalSegments: 2"},
		{"Scan", `{"TableName":"locks","Limit":0}`, "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"Scan", `{"TableName":"locks","Select":"COUNT","ProjectionExpression":"n"}`, "Cannot specify the ProjectionExpression when choosing to get only the Count"},
		{"BatchGetItem", `{"RequestItems":{"locks":{"Keys":[{"id":{"S":"a"}},{"id":{"S":"a"}}]}}}`, "Provided list of item keys contains duplicates"},
		{"BatchGetItem", `{"RequestItems":{"locks":{"Keys":[` + strings.TrimSuffix(strings.Repeat(`{"id":{"S":"a"}},`, 101), ",") + `]}}}`, "1 validation error detected: Value '[101 keys]' at 'requestItems.locks.member.keys' failed to satisfy constraint: Member must have length less than or equal to 100"},
		{"BatchWriteItem", `{"RequestItems":{"locks":[{"PutRequest":{"Item":{"id":{"S":"b"}}}},{"DeleteRequest":{"Key":{"id":{"S":"b"}}}}]}}`, "Provided list of item keys contains duplicates"},
		{"BatchWriteItem", `{"RequestItems":{"locks":[` + strings.TrimSuffix(strings.Repeat(`{"DeleteRequest":{"Key":{"id":{"S":"b"}}}},`, 26), ",") + `]}}`, "1 validation error detected: Value '{locks=[26 writes]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"},
		{"BatchWriteItem", `{"RequestItems":{"locks":[` + strings.TrimSuffix(strings.Repeat(`{"DeleteRequest":{"Key":{"id":{"S":"b"}}}},`, 25), ",") + `],"other":[{}]}}`, "Too many items requested for the BatchWriteItem call"},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"locks","Item":{"id":{"S":"b"}}}},{"Delete":{"TableName":"locks","Key":{"id":{"S":"b"}}}}]}`, "Transaction request cannot include multiple operations on one item"},
		{"TransactWriteItems", `{"TransactItems":[` + strings.TrimSuffix(strings.Repeat(`{"Delete":{"TableName":"locks","Key":{"id":{"S":"b"}}}},`, 101), ",") + `]}`, "1 validation error detected: Value '[101 items]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"},
		{"TransactWriteItems", `{"TransactItems":[{"Update":{"TableName":"locks","Key":{"id":{"S":"b"}},"UpdateExpression":"SET a = = b"}}]}`, `Invalid UpdateExpression: Syntax error; token: "=", near: "= = b"`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"locks","Key":{"id":{"S":"a"}}}},{"Get":{"TableName":"locks","Key":{"id":{"S":"a"}}}}]}`, "Transaction request cannot include multiple operations on one item"},
		{"CreateTable", `{"TableName":"indexed","KeySchema":[{"AttributeName":"h","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"h","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST","GlobalSecondaryIndexes":[{}]}`, "localdynamo does not support secondary indexes: create the table without them, or use DynamoDB Local"},
		{"CreateTable", `{"TableName":"keyless","KeySchema":[{"AttributeName":"h","KeyType":"RANGE"}],"AttributeDefinitions":[],"BillingMode":"PAY_PER_REQUEST"}`, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"UpdateTimeToLive", `{"TableName":"locks","TimeToLiveSpecification":{"AttributeName":"x","Enabled":false}}`, "TimeToLive is already disabled"},
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
	kilobytes := func(n string) string { return strings.Repeat(n, 3000) }
	for _, test := range []struct{ operation, body, reply string }{
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":{"TableName":"locks","CapacityUnits":0.5}`},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ConsistentRead":true,"ReturnConsumedCapacity":"INDEXES"}`, `"ConsumedCapacity":{"TableName":"locks","CapacityUnits":1.0,"Table":{"CapacityUnits":1.0}}`},
		{"GetItem", `{"TableName":"locks","Key":{"id":{"S":"a"}},"ReturnConsumedCapacity":"NONE"}`, ``},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"b"},"x":{"S":"` + kilobytes("x") + `"}},"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":{"TableName":"locks","CapacityUnits":3.0}`},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"locks","Item":{"id":{"S":"b"},"x":{"S":"` + kilobytes("x") + `"}}}}],"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":6.0,"WriteCapacityUnits":6.0}]`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"locks","Key":{"id":{"S":"a"}}}},{"Get":{"TableName":"locks","Key":{"id":{"S":"z"}}}}],"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":4.0,"ReadCapacityUnits":4.0}]`},
		{"BatchGetItem", `{"RequestItems":{"locks":{"Keys":[{"id":{"S":"a"}},{"id":{"S":"z"}}]}},"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":1.0}]`},
		{"BatchWriteItem", `{"RequestItems":{"locks":[{"PutRequest":{"Item":{"id":{"S":"b"}}}},{"DeleteRequest":{"Key":{"id":{"S":"a"}}}}]},"ReturnConsumedCapacity":"TOTAL"}`, `"ConsumedCapacity":[{"TableName":"locks","CapacityUnits":2.0}]`},
	} {
		_, body := call(t, newSeeded(t), test.operation, test.body)
		if at := strings.Index(body, `"ConsumedCapacity"`); at < 0 && test.reply != "" || at >= 0 && body[at:] != test.reply+"}" {
			t.Errorf("%s %.120s\n got %s\nwant %s", test.operation, test.body, body, test.reply)
		}
	}
}

func TestBatchRequestsReadAndWriteMultipleItems(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		newTable(t, e)
		want(t, e, "BatchWriteItem", `{"RequestItems":{"locks":[{"PutRequest":{"Item":{"id":{"S":"a"},"x":{"S":"1"}}}},{"PutRequest":{"Item":{"id":{"S":"b"}}}}]}}`, `{"UnprocessedItems":{}}`)
		want(t, e, "BatchWriteItem", `{"RequestItems":{"locks":[{"DeleteRequest":{"Key":{"id":{"S":"b"}}}}]}}`, `{"UnprocessedItems":{}}`)
		want(t, e, "BatchGetItem", `{"RequestItems":{"locks":{"Keys":[{"id":{"S":"b"}},{"id":{"S":"a"}}],"ProjectionExpression":"#x","ExpressionAttributeNames":{"#x":"x"}}}}`,
			`{"Responses":{"locks":[{"x":{"S":"1"}}]},"UnprocessedKeys":{}}`)
	})
}

func TestTransactGetItemsReturnsProjectedItems(t *testing.T) {
	e := newSeeded(t)
	want(t, e, "TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"locks","Key":{"id":{"S":"a"}},"ProjectionExpression":"m.y[1], n"}},{"Get":{"TableName":"locks","Key":{"id":{"S":"z"}}}}]}`,
		`{"Responses":[{"Item":{"m":{"M":{"y":{"L":[{"N":"2"}]}}},"n":{"N":"5"}}},{}]}`)
}

func TestReturnValuesSelectsOldOrNewAttributes(t *testing.T) {
	for returned, attributes := range map[string]string{
		"NONE":        ``,
		"ALL_OLD":     `"Attributes":{"id":{"S":"r"},"a":{"N":"1"},"b":{"N":"2"}}`,
		"ALL_NEW":     `"Attributes":{"id":{"S":"r"},"a":{"N":"9"},"b":{"N":"2"},"c":{"N":"9"}}`,
		"UPDATED_OLD": `"Attributes":{"a":{"N":"1"}}`,
		"UPDATED_NEW": `"Attributes":{"a":{"N":"9"},"c":{"N":"9"}}`,
	} {
		e := newSeeded(t)
		want(t, e, "PutItem", `{"TableName":"locks","Item":{"id":{"S":"r"},"a":{"N":"1"},"b":{"N":"2"}}}`, `{}`)
		want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"r"}},"UpdateExpression":"SET a = :v, c = :v","ExpressionAttributeValues":{":v":{"N":"9"}},"ReturnValues":"`+returned+`"}`, `{`+attributes+`}`)
	}
}

func TestUpdateWithoutExpressionCreatesItemFromKey(t *testing.T) {
	e := newSeeded(t)
	want(t, e, "UpdateItem", `{"TableName":"locks","Key":{"id":{"S":"new"}},"ReturnValues":"ALL_NEW"}`, `{"Attributes":{"id":{"S":"new"}}}`)
	want(t, e, "GetItem", `{"TableName":"locks","Key":{"id":{"S":"new"}}}`, `{"Item":{"id":{"S":"new"}}}`)
}
