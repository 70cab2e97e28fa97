package localdynamo

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSONReaderRejectsInvalidAttributeValues(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"L":[`, levels) + `{"S":"x"}` + strings.Repeat(`]}`, levels)
	}
	for written, want := range map[string]string{
		`{}`:                     "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
		`{"S":null}`:             "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
		`{"FOO":"x"}`:            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
		`{"S":"x","N":"1"}`:      "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
		`{"NULL":false}`:         "One or more parameter values were invalid: Null attribute value types must have the value of true",
		`{"SS":["a","b","a"]}`:   "One or more parameter values were invalid: Input collection [a, b, a] contains duplicates.",
		`{"BS":["YQ==","YQ=="]}`: "One or more parameter values were invalid: Input collection of type BS contains duplicates.",
		`{"M":{"":{"S":"x"}}}`:   "Empty attribute name",
		`{"S":5}`:                "NUMBER_VALUE cannot be converted to String",
		`{"S":["x"]}`:            "Start of list found where not expected",
		`{"BOOL":"true"}`:        "STRING_VALUE cannot be converted to Boolean",
		`{"B":"!"}`:              `"!" is not base64`,
		nested(maxNesting):       textNesting,
	} {
		err := readJSON(written, func(r *reader) { r.value(1) })
		if refused, ok := err.(*apiError); !ok || refused.message != want {
			t.Errorf("%.60s: %v, want %s", written, err, want)
		}
	}
	same(t, "error for one level less", readJSON(nested(maxNesting-1), func(r *reader) { r.value(1) }), nil)
}

func TestReaderDecodesStringsAsJSONUnmarshalDoes(t *testing.T) {
	for _, written := range []string{
		`"plain"`, `"é😀"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\ud83d\ude00"`, `"a\ud83dz"`, `"\ud83d\u0041"`, `"\udE00"`, `"\u0000"`,
	} {
		var want, got string
		ok(t, json.Unmarshal([]byte(written), &want))
		if err := readJSON(written, func(r *reader) { got = r.string() }); err != nil || got != want {
			t.Errorf("%s was read as %q, %v; want %q", written, got, err, want)
		}
	}
}

func TestJSONReaderUsesLastOfDuplicateMembers(t *testing.T) {
	it := parseItem(t, `{"b":{"S":"1"},"a":{"S":"2"},"b":{"S":"3"}}`)
	if len(it) != 2 || it.get("b").text != "3" || it.get("a").text != "2" {
		t.Errorf("%v", it)
	}
}

// FuzzReaderAcceptsSameBodiesAsEncodingJSON compares the reader with encoding/json. Both must
// accept the same bodies, except bodies with very deep nesting. No body may make readJSON panic.
func FuzzReaderAcceptsSameBodiesAsEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"TableName":"locks","Key":{"id":{"S":"a"}},"ExpressionAttributeValues":{":v":{"NS":["1","2.50"]}},"Limit":1e1}`,
		`{"TransactItems":[{"Put":{"Item":{"a":{"L":[{"M":{}},{"B":"AA=="}]}}}}],"RequestItems":{"t":[{"PutRequest":{}}],"u":{"Keys":[]}}}`,
		`{"Expected":{"x":[1,-0.5e-3,true,null,"\u00e9"]}}`, `[]`, `{`, `null`, ``, "\xff", `{"a":1}x`, `{"Key":{"":{}}}`,
		`{"Item":{"a":{"NS":["","0"]}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		skipped := readJSON(body, func(r *reader) { r.skip(0) })
		if valid := utf8.ValidString(body) && json.Valid([]byte(body)); valid != (skipped == nil) {
			if !strings.Contains(body, strings.Repeat("[", 100)) && !strings.Contains(body, strings.Repeat(`{`, 100)) {
				t.Errorf("%q: encoding/json says %v, the reader %v", body, valid, skipped)
			}
		}
		if _, err := readRequest(body); err == nil && skipped != nil {
			t.Errorf("%q is a request but not JSON: %v", body, skipped)
		}
	})
}

func TestDeeplyNestedBodyDoesNotCrashProcess(t *testing.T) {
	e := seededEngine(t)
	for level, size := range map[string]int{
		`{"TransactItems":[{"Put":`: maxBody, `{"RequestItems":{"locks":`: maxBody, `{"RequestItems":{"locks":[{"PutRequest":`: maxBody,
		`{"Item":{"M":`: 1 << 20, `{"Item":{"a":{"M":`: 1 << 20, `{"Item":{"a":{"L":[`: 1 << 20, `{"Unknown":`: 1 << 20, `[`: 1 << 20, `{"Key":{"a":{"unknown":[`: 1 << 20,
	} {
		replied(t, level, send(e, "TransactWriteItems", strings.Repeat(level, size/len(level))), http.StatusBadRequest)
	}
}

// The test limits the total memory that is allocated while a body is decoded. The total includes
// memory that is freed before the decoding ends.
func TestDecodingAllocatesAtMost200TimesBodySize(t *testing.T) {
	const size, most = 256 << 10, 200
	for name, body := range map[string][3]string{
		"actions":                   {`{"TransactItems":[`, `{},`, `{}]}`},
		"actions without a name":    {`{"TransactItems":[`, `{"":{}},`, `{}]}`},
		"members of an action":      {`{"TransactItems":[{`, `"":{},`, `"":{}}]}`},
		"writes":                    {`{"RequestItems":{"locks":[`, `{},`, `{}]}}`},
		"tables":                    {`{"RequestItems":{`, `"":{},`, `"":{}}}`},
		"keys":                      {`{"RequestItems":{"locks":{"Keys":[`, `{},`, `{}]}}}`},
		"values without a type":     {`{"Item":{"l":{"L":[`, `{},`, `{}]}}}`},
		"attributes without a name": {`{"Item":{`, `"":{},`, `"":{}}}`},
		"nulls":                     {`{"Item":{"l":{"L":[`, `{"NULL":true},`, `{"NULL":true}]}}}`},
		"a set":                     {`{"Item":{"l":{"SS":[`, `"",`, `""]}}}`},
		"values":                    {`{"ExpressionAttributeValues":{`, `"":{},`, `"":{}}}`},
		"names":                     {`{"ExpressionAttributeNames":{`, `"":"",`, `"":""}}`},
		"legacy members":            {`{`, `"Expected":0,`, `"Expected":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			whole := body[0] + strings.Repeat(body[1], size/len(body[1])) + body[2]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readRequest(whole)
			runtime.ReadMemStats(&after)
			if took := int(after.TotalAlloc-before.TotalAlloc) / len(whole); took > most {
				t.Errorf("allocated %d times the size of the body (%.100v)", took, err)
			}
		})
	}
}

// operations lists the operations of the engine. The stored inputs of
// FuzzFailedRequestChangesNothing contain indexes into this list.
var operations = slices.Concat(slices.Sorted(maps.Keys(itemCalls)), slices.Sorted(maps.Keys(tableCalls)))

// bodySeeds contains request bodies, by operation.
var bodySeeds = map[string][]string{
	"GetItem": {`{"TableName":"locks","Key":{"id":{"S":"a"}},"ProjectionExpression":"m.y[1], #n","ExpressionAttributeNames":{"#n":"n"},"ConsistentRead":true}`},
	"PutItem": {
		`{"TableName":"locks","Item":{"id":{"S":"b"},"n":{"N":"1"}},"ConditionExpression":"attribute_not_exists(id)","ReturnValues":"ALL_OLD"}`,
		`{"TableName":"locks","Item":{"id":{"S":"a"},"x":{"NULL":true},"t":{"BOOL":false}},"ReturnConsumedCapacity":"TOTAL"}`,
		`{"TableName":"locks","Item":` + strings.Repeat(`{"M":{"x":`, 40) + `{"S":"x"}` + strings.Repeat(`}}`, 40) + `}`,
	},
	"UpdateItem": {
		`{"TableName":"locks","Key":{"id":{"S":"a"}},"UpdateExpression":"SET n = if_not_exists(n, :v) + :v, l[1] = :s REMOVE m.x ADD s :set","ConditionExpression":"n BETWEEN :v AND :w","ExpressionAttributeValues":{":v":{"N":"1"},":w":{"N":"9"},":s":{"S":"q"},":set":{"SS":["c"]}},"ReturnValues":"UPDATED_NEW","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`,
		`{"TableName":"locks","Key":{"id":{"S":"new"}},"UpdateExpression":"SET c = list_append(:l, :l)","ExpressionAttributeValues":{":l":{"L":[{"N":"1e125"}]}}}`,
	},
	"DeleteItem":         {`{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"contains(s, :a) OR size(l) > :n","ExpressionAttributeValues":{":a":{"S":"a"},":n":{"N":"3"}}}`},
	"Query":              {`{"TableName":"locks","KeyConditionExpression":"id = :id","FilterExpression":"n > :n","ExpressionAttributeValues":{":id":{"S":"a"},":n":{"N":"0"}},"Limit":1,"ScanIndexForward":false}`},
	"Scan":               {`{"TableName":"locks","TotalSegments":3,"Segment":1,"Select":"COUNT"}`, `{"TableName":"locks","ExclusiveStartKey":{"id":{"S":"a"}}}`},
	"BatchGetItem":       {`{"RequestItems":{"locks":{"Keys":[{"id":{"S":"a"}},{"id":{"S":"b"}}]}}}`},
	"BatchWriteItem":     {`{"RequestItems":{"locks":[{"PutRequest":{"Item":{"id":{"S":"c"}}}},{"DeleteRequest":{"Key":{"id":{"S":"a"}}}}]}}`},
	"TransactGetItems":   {`{"TransactItems":[{"Get":{"TableName":"locks","Key":{"id":{"S":"a"}}}}]}`},
	"TransactWriteItems": {`{"ClientRequestToken":"t","TransactItems":[{"Put":{"TableName":"locks","Item":{"id":{"S":"d"}}}},{"ConditionCheck":{"TableName":"locks","Key":{"id":{"S":"a"}},"ConditionExpression":"n = :n","ExpressionAttributeValues":{":n":{"N":"5"}}}}]}`},
	"CreateTable":        {`{"TableName":"more","KeySchema":[{"AttributeName":"k","KeyType":"HASH"},{"AttributeName":"r","KeyType":"RANGE"}],"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"B"},{"AttributeName":"r","AttributeType":"N"}],"BillingMode":"PAY_PER_REQUEST","Tags":[{"Key":"a","Value":"b"}]}`},
	"DeleteTable":        {`{"TableName":"locks"}`},
	"DescribeTable":      {`{"TableName":"arn:aws:dynamodb:local:000000000000:table/locks"}`},
	"ListTables":         {`{"Limit":1,"ExclusiveStartTableName":"a"}`},
	"UpdateTable":        {`{"TableName":"locks","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}}`},
	"UpdateTimeToLive":   {`{"TableName":"locks","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`},
	"DescribeTimeToLive": {`{"TableName":"locks"}`},
	"TagResource":        {`{"ResourceArn":"arn:aws:dynamodb:local:000000000000:table/locks","Tags":[{"Key":"a","Value":"b"}]}`},
	"UntagResource":      {`{"ResourceArn":"arn:aws:dynamodb:local:000000000000:table/locks","TagKeys":["a"]}`},
	"ListTagsOfResource": {`{"ResourceArn":"arn:aws:dynamodb:local:000000000000:table/locks"}`},
	"DescribeLimits":     {`{}`}, "DescribeEndpoints": {``},
}

// seededEngine returns an engine that has the table "locks" with the item "a".
func seededEngine(t testing.TB) *Engine {
	t.Helper()
	e := New()
	for _, r := range [][2]string{
		{"CreateTable", `{"TableName":"locks","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}`},
		{"PutItem", `{"TableName":"locks","Item":{"id":{"S":"a"},"n":{"N":"5"},"s":{"SS":["b","a"]},"l":{"L":[{"S":"1"},{"S":"2"}]},"m":{"M":{"x":{"S":"q"},"y":{"L":[{"N":"1"},{"N":"2"}]}}}}}`},
	} {
		replied(t, r[0], send(e, r[0], r[1]), http.StatusOK)
	}
	return e
}

// send makes a request without the SDK, and sends it to the engine. Before that, it calls the given
// functions, which can modify the request.
func send(e *Engine, operation, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return serve(e, operation, strings.NewReader(body), change...)
}

func serve(e *Engine, operation string, body io.Reader, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8000/", body)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	for _, change := range change {
		change(r)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// ofLength sets the ContentLength of a request. With -1, the body is sent in chunks.
func ofLength(n int64) func(*http.Request) { return func(r *http.Request) { r.ContentLength = n } }

func TestServeHTTPRejectsBodyWithTooManyValues(t *testing.T) {
	repeated := func(one string, n int) string { return strings.Repeat(one+",", n-1) + one }
	item := func(list string) string {
		return `{"TableName":"locks","Item":{"id":{"S":"many"},"l":{"L":[` + list + `]}}}`
	}
	for name, body := range map[string]string{
		"maps in a list":                   item(repeated(`{"M":{}}`, maxValues/2+1)),
		"elements of a set":                `{"TableName":"locks","Item":{"id":{"S":"many"},"s":{"SS":[` + repeated(`""`, maxValues+1) + `]}}}`,
		"keys":                             `{"Keys":[` + repeated(`{}`, maxValues+1) + `]}`,
		"names":                            `{"ExpressionAttributeNames":{` + repeated(`"":""`, maxValues+1) + `}}`,
		"an ignored member":                `{"Unknown":[` + repeated(`0`, maxValues+1) + `]}`,
		"more nulls than an item can have": item(repeated(`{"NULL":true}`, maxValues)),
	} {
		e := seededEngine(t)
		before := storedBy(t, e)
		replied(t, name, send(e, "PutItem", body), http.StatusBadRequest, "#ValidationException", strconv.Itoa(maxValues))
		same(t, name+": the store", storedBy(t, e), before)
	}
	// The item has the maximum size, and consists of the smallest possible values, of 2 bytes each.
	replied(t, "an item of the maximum size", send(seededEngine(t), "PutItem", item(repeated(`{"NULL":true}`, 400<<10/2-10))), http.StatusOK)
}

// ok ends the test if err is not nil.
func ok(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// same fails the test unless got and want are deeply equal. The parameter "what" names the value.
func same[T any](t interface {
	Helper()
	Errorf(string, ...any)
}, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%.300s: %v, want %v", what, got, want)
	}
}

// replied fails the test unless the reply has the given status, and its body contains the parts.
func replied(t testing.TB, what string, w *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	lacks := func(part string) bool { return !strings.Contains(w.Body.String(), part) }
	if w.Code != status || slices.ContainsFunc(parts, lacks) {
		t.Errorf("%.300s: %d %.300s, want %d and %q", what, w.Code, w.Body, status, parts)
	}
}

// storedBy returns all keys and values in the engine's store.
func storedBy(t testing.TB, e *Engine) map[string]string {
	t.Helper()
	all := map[string]string{}
	ok(t, e.store.View(func(tx Tx) error {
		for key, value := range tx.Range(nil, nil) {
			all[string(key)] = string(value)
		}
		return nil
	}))
	return all
}

// FuzzFailedRequestChangesNothing sends random bodies to every operation. Each reply must have the
// form that the DynamoDB API requires. An error must name the problem, and its request must have
// changed nothing. After a change, the test writes each stored item back, which must change
// nothing.
func FuzzFailedRequestChangesNothing(f *testing.F) {
	for n, operation := range operations {
		if len(bodySeeds[operation]) == 0 {
			f.Fatalf("no seed for %s", operation)
		}
		for _, body := range bodySeeds[operation] {
			f.Add(uint8(n), body)
		}
		for _, body := range []string{``, `null`, `[]`, `{`, "\xff", `{"TableName":5}`, `{"TableName":"locks"}`, strings.Repeat(`[`, 1000)} {
			f.Add(uint8(n), body)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, body string) {
		operation := operations[int(n)%len(operations)]
		e := seededEngine(t)
		before := storedBy(t, e)
		w := send(e, operation, body)
		want := strconv.FormatUint(uint64(crc32.ChecksumIEEE(w.Body.Bytes())), 10)
		same(t, operation+": checksum", w.Header().Get("X-Amz-Crc32"), want)
		var reply map[string]any
		nothing := w.Code == http.StatusOK && w.Body.Len() == 0 && (operation == "TagResource" || operation == "UntagResource")
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil && !nothing {
			t.Fatalf("%s: %d with %q: %v", operation, w.Code, w.Body, err)
		}
		if w.Code != http.StatusOK {
			kind, _ := reply["__type"].(string)
			message, _ := reply["message"].(string)
			if upper, ok := reply["Message"].(string); ok {
				message = upper
			}
			if w.Code != http.StatusBadRequest || kind == "" || message == "" || kind == typeInternal {
				t.Errorf("%s: %d %s", operation, w.Code, w.Body)
			}
			same(t, operation+" that failed: the store", storedBy(t, e), before)
			return
		}
		after := storedBy(t, e)
		if maps.Equal(before, after) || after[string(tableKey("locks"))] == "" {
			return
		}
		scanned := send(e, "Scan", `{"TableName":"locks"}`)
		var page struct{ Items []json.RawMessage }
		if err := json.Unmarshal(scanned.Body.Bytes(), &page); err != nil || scanned.Code != http.StatusOK {
			t.Fatalf("after %s: scan: %d %s, %v", operation, scanned.Code, scanned.Body, err)
		}
		for _, item := range page.Items {
			what := fmt.Sprintf("an item that %s has stored: %s", operation, item)
			replied(t, what, send(e, "PutItem", `{"TableName":"locks","Item":`+string(item)+`}`), http.StatusOK)
		}
		again := send(e, "Scan", `{"TableName":"locks"}`)
		same(t, "items of "+operation+", put again", again.Body.String(), scanned.Body.String())
	})
}
