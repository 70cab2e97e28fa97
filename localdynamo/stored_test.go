package localdynamo

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// storedSeeds are items in the form that they have in requests.
var storedSeeds = []string{
	`{}`, `{"id":{"S":"a"}}`,
	`{"id":{"S":"a"},"n":{"N":"-1.5e-7"},"b":{"B":"AAEC"},"t":{"BOOL":true},"z":{"NULL":true},"e":{"S":""}}`,
	`{"m":{"M":{"x":{"L":[{"S":"q"},{"M":{}}]}}},"ss":{"SS":["b","a"]},"ns":{"NS":["1","2.50"]},"bs":{"BS":["YQ=="]}}`,
	`{"deep":` + strings.Repeat(`{"L":[`, maxNesting-1) + `{"S":"x"}` + strings.Repeat(`]}`, maxNesting-1) + `}`,
}

// FuzzStored checks the stored form of items. A stored item is read back unchanged. Reading
// a damaged item returns an error, or an item that can be stored again. Reading a truncated
// item returns an error.
func FuzzStored(f *testing.F) {
	for _, seed := range storedSeeds {
		f.Add([]byte(seed))
		f.Add(appendItem(nil, parseItem(f, seed)))
	}
	f.Add([]byte("\x01\x01a\x01\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var asked item
		if readJSON(string(b), func(r *reader) { asked = r.item(1) }) == nil {
			reads(t, appendItem(nil, asked), asked)
		}
		it, err := readItem(b)
		if err != nil {
			if !errors.Is(err, errDamaged) || it != nil {
				t.Errorf("%x: %v, %v", b, it, err)
			}
			return
		}
		again := appendItem(nil, it)
		reads(t, again, it)
		for cut := range min(len(b), 64) {
			if _, err := readItem(b[:len(b)-1-cut]); err == nil {
				t.Fatalf("%x reads without its last %d bytes", b, cut+1)
			}
		}
		var shown any
		if err := json.Unmarshal(appendJSONItem(nil, it), &shown); err != nil && strings.ToValidUTF8(string(again), "") == string(again) {
			t.Errorf("%x is shown as no JSON: %v", b, err)
		}
	})
}

// reads fails the test unless b is the stored form of want.
func reads(t *testing.T, b []byte, want item) {
	t.Helper()
	got, err := readItem(b)
	if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(appendItem(nil, got), appendItem(nil, want)) || !bytes.Equal(b, appendItem(nil, got)) {
		t.Errorf("%v is stored as %x, which reads as %v, %v", want, b, got, err)
	}
}

// In a damaged file, values may be nested as deeply as the file's length allows.
func TestDamagedStoredItemReturnsErrorAtAnyDepth(t *testing.T) {
	deep := append([]byte("\x01\x01a"), bytes.Repeat([]byte{byte(kindL), 1}, 1<<22)...)
	if _, err := readItem(deep); !errors.Is(err, errDamaged) {
		t.Errorf("error %v", err)
	}
}
