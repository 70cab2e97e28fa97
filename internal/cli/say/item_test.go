package say

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRaw compares what get --raw has written: a text is the same as itself however it
// is laid out, and as no other but for the order in its sets.
func FuzzRaw(f *testing.F) {
	const raw = `{"key":{"S":"job"},"set":{"SS":["a","b"]},"m":{"M":{"l":{"L":[{"N":"1"},{"NULL":true}]}}}}`
	for _, other := range []string{raw, strings.Replace(raw, `"a","b"`, `"b","a"`, 1), strings.Replace(raw, `"1"`, `"2"`, 1), `{}`, ``, raw + "]", raw + raw, `{"N":9007199254740992}`} {
		f.Add([]byte(raw), []byte(other))
	}
	f.Add([]byte(`{"N":9007199254740993}`), []byte(`{"N":9007199254740992}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if SameItem(a, b) != SameItem(b, a) {
			t.Errorf("%s and %s: it depends on who asks", a, b)
		}
		one := ordered(a)
		if (one != nil) != json.Valid(a) || SameItem(a, a) != (one != nil) {
			t.Fatalf("%q: JSON %v, the same as itself %v", a, json.Valid(a), SameItem(a, a))
		}
		if one == nil {
			return
		}
		if !bytes.Equal(ordered(one), one) || !SameItem(a, Indented(a)) {
			t.Errorf("%q is not the same in another layout: %s", a, one)
		}
		if SameItem(a, b) && letters(a) != letters(b) && utf8.Valid(a) && utf8.Valid(b) && !bytes.ContainsAny(append(slices.Clone(a), b...), `\<>&`) && unique(a) && unique(b) {
			t.Errorf("%q and %q are taken for the same", a, b)
		}
	})
}

// letters are the bytes of a text but for white space outside of its strings, sorted.
func letters(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	out := b.Bytes()
	slices.Sort(out)
	return string(out)
}

// unique reports whether no object has a name twice: then its last value counts.
func unique(raw []byte) bool {
	var b bytes.Buffer
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if json.Compact(&b, raw) != nil || d.Decode(&v) != nil {
		return false
	}
	again, err := json.Marshal(v)
	return err == nil && len(again) == b.Len()
}
