package localdynamo

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

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

// The test counts all allocations, whether or not they have been freed since.
func TestDecodedBodyMemoryIsBounded(t *testing.T) {
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
