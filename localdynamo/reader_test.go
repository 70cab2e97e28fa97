package localdynamo

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestInvalidValuesAreRejected(t *testing.T) {
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
	if err := readJSON(nested(maxNesting-1), func(r *reader) { r.value(1) }); err != nil {
		t.Errorf("%d levels: %v", maxNesting-1, err)
	}
}

func TestJSONStringsAreDecodedAsByEncodingJSON(t *testing.T) {
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

func TestLastOfDuplicateJSONMembersIsUsed(t *testing.T) {
	it := parseItem(t, `{"b":{"S":"1"},"a":{"S":"2"},"b":{"S":"3"}}`)
	if len(it) != 2 || it.get("b").text != "3" || it.get("a").text != "2" {
		t.Errorf("%v", it)
	}
}

// FuzzRequest checks that the engine's JSON reader accepts the same bodies as
// encoding/json, except for very deep nesting. No body may make the reader panic.
func FuzzRequest(f *testing.F) {
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

func TestDeeplyNestedBodyDoesNotCrash(t *testing.T) {
	e := seededEngine(t)
	for level, size := range map[string]int{
		`{"TransactItems":[{"Put":`: maxBody, `{"RequestItems":{"locks":`: maxBody, `{"RequestItems":{"locks":[{"PutRequest":`: maxBody,
		`{"Item":{"M":`: 1 << 20, `{"Item":{"a":{"M":`: 1 << 20, `{"Item":{"a":{"L":[`: 1 << 20, `{"Unknown":`: 1 << 20, `[`: 1 << 20, `{"Key":{"a":{"unknown":[`: 1 << 20,
	} {
		if w := send(e, "TransactWriteItems", strings.Repeat(level, size/len(level))); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", level, w.Code, w.Body)
		}
	}
}

// The test counts every allocation, even if the memory has been freed again.
func TestMemoryForDecodedBodyIsBounded(t *testing.T) {
	const size, most = 256 << 10, 200
	for name, body := range map[string][3]string{
		"actions":               {`{"TransactItems":[`, `{},`, `{}]}`},
		"actions of nothing":    {`{"TransactItems":[`, `{"":{}},`, `{}]}`},
		"kinds of an action":    {`{"TransactItems":[{`, `"":{},`, `"":{}}]}`},
		"writes":                {`{"RequestItems":{"locks":[`, `{},`, `{}]}}`},
		"tables":                {`{"RequestItems":{`, `"":{},`, `"":{}}}`},
		"keys":                  {`{"RequestItems":{"locks":{"Keys":[`, `{},`, `{}]}}}`},
		"values without a type": {`{"Item":{"l":{"L":[`, `{},`, `{}]}}}`},
		"attributes of nothing": {`{"Item":{`, `"":{},`, `"":{}}}`},
		"nulls":                 {`{"Item":{"l":{"L":[`, `{"NULL":true},`, `{"NULL":true}]}}}`},
		"a set":                 {`{"Item":{"l":{"SS":[`, `"",`, `""]}}}`},
		"values":                {`{"ExpressionAttributeValues":{`, `"":{},`, `"":{}}}`},
		"names":                 {`{"ExpressionAttributeNames":{`, `"":"",`, `"":""}}`},
		"old members":           {`{`, `"Expected":0,`, `"Expected":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			whole := body[0] + strings.Repeat(body[1], size/len(body[1])) + body[2]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readRequest(whole)
			runtime.ReadMemStats(&after)
			if took := int(after.TotalAlloc-before.TotalAlloc) / len(whole); took > most {
				t.Errorf("it took %d times its size (%.100v)", took, err)
			}
		})
	}
}
