package localdynamo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyValue generates a value with at most depth levels of nested lists and maps.
func anyValue(depth int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		kinds := []kind{kindS, kindN, kindB, kindBool, kindNull, kindSS, kindNS, kindBS}
		if depth > 0 {
			kinds = append(kinds, kindL, kindM)
		}
		v := value{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.kind {
		case kindBool:
			v.yes = rapid.Bool().Draw(t, "yes")
		case kindNull:
		case kindL:
			v.list = rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list")
		case kindM:
			v.item = anyItem(depth-1).Draw(t, "map")
		case kindSS, kindNS, kindBS:
			elements := rapid.SliceOfN(anyScalar(v.kind.element()), 1, 4).Draw(t, "set")
			v, _ = newSet(v.kind, elements)
		default:
			v = anyScalar(v.kind).Draw(t, "scalar")
		}
		return v
	})
}

func anyScalar(k kind) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		v := value{kind: k}
		switch k {
		case kindN:
			v.text = rapid.Map(anyNumber(), func(s string) string { n, _ := parseNumber(s); return n }).Draw(t, "n")
		case kindB:
			v.text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "b"))
		default:
			v.text = rapid.String().Draw(t, "s")
		}
		return v
	})
}

func anyItem(depth int) *rapid.Generator[item] {
	return rapid.Custom(func(t *rapid.T) item {
		it := item{}
		for name, v := range rapid.MapOfN(rapid.StringN(1, 8, -1), anyValue(depth), 0, 4).Draw(t, "item") {
			it = it.with(name, v)
		}
		return it
	})
}

func sameItem(a, b item) bool {
	return value{kind: kindM, item: a}.equal(value{kind: kindM, item: b})
}

func TestStoredItemIsDecodedUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := anyItem(3).Draw(t, "item")
		stored := appendItem(nil, it)
		if back, err := readItem(stored); err != nil || !sameItem(it, back) {
			t.Fatalf("%v was read back as %v, %v", it, back, err)
		}
		// If a stored item is truncated at any point, reading it must return an error.
		cut := rapid.IntRange(0, len(stored)-1).Draw(t, "cut")
		if back, err := readItem(stored[:cut]); err == nil {
			t.Fatalf("%d of %d bytes were read as %v", cut, len(stored), back)
		}
	})
}

func TestItemIsUnchangedByJSONEncodingAndDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := anyItem(3).Draw(t, "item")
		written := appendJSONItem(nil, it)
		if !json.Valid(written) {
			t.Fatalf("not JSON: %s", written)
		}
		var back item
		if err := readJSON(string(written), func(r *reader) { back = r.item(1) }); err != nil || !sameItem(it, back) {
			t.Fatalf("%s was read back as %v, %v", written, back, err)
		}
	})
}

func TestItemMatchesGoMapAfterSetsAndDeletes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it, model := item{}, map[string]value{}
		for range 20 {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
			before := reflect.ValueOf(it).Len()
			if rapid.Bool().Draw(t, "set") {
				v := integer(rapid.IntRange(0, 9).Draw(t, "value"))
				old := it
				it, model[name] = it.with(name, v), v
				same(t, "length of the original item", len(old), before)
			} else {
				it = it.with(name, value{})
				delete(model, name)
			}
			if len(it) != len(model) {
				t.Fatalf("%v, want %v", it, model)
			}
			for name, v := range model {
				if !it.get(name).equal(v) {
					t.Fatalf("%v, want %v", it, model)
				}
			}
		}
	})
}

func TestItemSizesMatchDynamoDBManual(t *testing.T) {
	for written, want := range map[string]int{
		`{"a":{"S":""}}`:                                  1,
		`{"a":{"S":"é"}}`:                                 3,
		`{"ab":{"N":"12345"}}`:                            2 + 4,
		`{"a":{"N":"-1"}}`:                                1 + 3,
		`{"a":{"N":"0"}}`:                                 1 + 1,
		`{"a":{"N":"1000000"}}`:                           1 + 2,
		`{"a":{"B":"AAEC"}}`:                              1 + 3,
		`{"a":{"BOOL":true},"b":{"NULL":true}}`:           4,
		`{"a":{"SS":["x","yz"]}}`:                         1 + 3,
		`{"a":{"L":[]},"m":{"M":{}}}`:                     1 + 3 + 1 + 3,
		`{"a":{"L":[{"S":"x"},{"S":"y"}]}}`:               1 + 3 + 2*2,
		`{"a":{"M":{"k":{"S":"x"}}}}`:                     1 + 3 + 1 + 2,
		`{"a":{"S":"` + strings.Repeat("x", 1000) + `"}}`: 1001,
	} {
		same(t, "size of "+written, parseItem(t, written).size(), want)
	}
}

// parseItem parses an item that is written in DynamoDB's JSON format.
func parseItem(t testing.TB, written string) item {
	t.Helper()
	var it item
	if err := readJSON(written, func(r *reader) { it = r.item(1) }); err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	return it
}

// storedSeeds are items in DynamoDB's JSON format. FuzzStoredItemIsReadBackUnchanged starts
// with them.
var storedSeeds = []string{
	`{}`, `{"id":{"S":"a"}}`,
	`{"id":{"S":"a"},"n":{"N":"-1.5e-7"},"b":{"B":"AAEC"},"t":{"BOOL":true},"z":{"NULL":true},"e":{"S":""}}`,
	`{"m":{"M":{"x":{"L":[{"S":"q"},{"M":{}}]}}},"ss":{"SS":["b","a"]},"ns":{"NS":["1","2.50"]},"bs":{"BS":["YQ=="]}}`,
	`{"deep":` + strings.Repeat(`{"L":[`, maxNesting-1) + `{"S":"x"}` + strings.Repeat(`]}`, maxNesting-1) + `}`,
}

// FuzzStoredItemIsReadBackUnchanged also reads damaged and truncated items. For a damaged item,
// readItem must return an error, or an item that can be stored again. For a truncated item, it
// must return an error.
func FuzzStoredItemIsReadBackUnchanged(f *testing.F) {
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

// reads fails the test unless readItem decodes b, and the result equals the item "want".
func reads(t *testing.T, b []byte, want item) {
	t.Helper()
	got, err := readItem(b)
	if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(appendItem(nil, got), appendItem(nil, want)) || !bytes.Equal(b, appendItem(nil, got)) {
		t.Errorf("%v is stored as %x, which reads as %v, %v", want, b, got, err)
	}
}

// A damaged file may contain a value with millions of nested lists. For this value, readItem must
// return an error instead of recursing into every list.
func TestReadItemRejectsTooDeeplyNestedItem(t *testing.T) {
	deep := append([]byte("\x01\x01a"), bytes.Repeat([]byte{byte(kindL), 1}, 1<<22)...)
	if _, err := readItem(deep); !errors.Is(err, errDamaged) {
		t.Errorf("error %v", err)
	}
}

// This test adds number formats to those that the tests of internal/conformance use.
func TestNumbersAreStoredInCanonicalForm(t *testing.T) {
	for given, want := range map[string]string{
		"00": "0", "-0.0": "0", "0e10": "0", ".0": "0", "001": "1", "1.0": "1", "1500e-2": "15", "+001.50e2": "150",
		"9007199254740993": "9007199254740993",
	} {
		if got, err := parseNumber(given); err != nil || got != want {
			t.Errorf("%s is kept as %s, %v; want %s", given, got, err, want)
		}
	}
}

func TestInvalidNumberIsRejected(t *testing.T) {
	for _, given := range []string{"abc", " 1", "1e", "--1", "1.2.3", ".", "1_000"} {
		got, err := parseNumber(given)
		if refused, ok := err.(*apiError); !ok || refused.message != textNoNumber+": "+given {
			t.Errorf("%q gives %s, %v", given, got, err)
		}
	}
	got, err := parseNumber("1.1E-131")
	if refused, ok := err.(*apiError); !ok || refused.message != textUnderflow {
		t.Errorf("too small: %s, %v", got, err)
	}
}

// anyNumber generates the text of a number in one of several notations.
func anyNumber() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`-?[0-9]{1,20}`),
		rapid.StringMatching(`-?[0-9]{0,12}\.[0-9]{1,12}`),
		rapid.StringMatching(`-?[0-9]\.[0-9]{0,30}[eE]-?[0-9]{1,2}`),
		rapid.SampledFrom([]string{"0", "-0", "1", "-1", "10", "9", "0.1", "1E125", "-1E125", "1E-130", "-1E-130"}),
	)
}

// parsed parses a number, and returns the canonical text that the engine stores for it.
func parsed(t *rapid.T, s string) string {
	n, err := parseNumber(s)
	ok(t, err)
	return n
}

func rational(t *rapid.T, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no number to math/big", s)
	}
	return r
}

func TestNumbersAreComparedByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := anyNumber().Draw(t, "one"), anyNumber().Draw(t, "two")
		a, b := parsed(t, one), parsed(t, two)
		x, y := rational(t, one), rational(t, two)
		same(t, one+" as "+a+": comparison", rational(t, a).Cmp(x), 0)
		if (a == b) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s are kept as %s and %s", one, two, a, b)
		}
		same(t, "compareNumbers of "+a+" and "+b, compareNumbers(a, b), x.Cmp(y))
		sortable := bytes.Compare(appendSortableNumber(nil, a), appendSortableNumber(nil, b))
		same(t, "comparison of the sortable forms of "+a+" and "+b, sortable, x.Cmp(y))
	})
}

func TestNumberSumIsExactUnlessItHasTooManyDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := parsed(t, anyNumber().Draw(t, "a")), parsed(t, anyNumber().Draw(t, "b"))
		minus := rapid.Bool().Draw(t, "minus")
		want := new(big.Rat).Add(rational(t, a), rational(t, b))
		if minus {
			want.Sub(rational(t, a), rational(t, b))
		}
		sum, err := addNumbers(a, b, minus)
		if err != nil {
			if _, digits, _ := numberParts(want.FloatString(131)); len(digits) <= maxDigits {
				t.Fatalf("%s and %s: %v", a, b, err)
			}
			return
		}
		same(t, a+" and "+b+" give "+sum+": comparison", rational(t, sum).Cmp(want), 0)
	})
}

func TestStringKeysAreSortedByBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'b', 0xff, '😀'}), 0, 6, -1)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		one := appendSortable(nil, value{kind: kindS, text: a})
		two := appendSortable(nil, value{kind: kindS, text: b})
		same(t, fmt.Sprintf("comparison of the sortable forms of %q and %q", a, b), bytes.Compare(one, two), cmp.Compare(a, b))
		if a != b && bytes.HasPrefix(one, two) {
			t.Fatalf("the sortable form of %q begins with that of %q", a, b)
		}
	})
}
