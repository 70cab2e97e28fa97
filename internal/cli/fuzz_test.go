package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// FuzzHeld reads LEASEHOLD_HELD, as a run passes it on to its CMD: whatever stands in
// it, the keys of a run inside are added to it, and are found.
func FuzzHeld(f *testing.F) {
	for _, seed := range []string{
		`[{"key":"job","table":"locks","store":"/f","token":42}]`, `[{"key":"a","sortKey":"s","table":"t","store":"aws"},{"key":"b","table":"t","store":"aws","token":9007199254740991}]`,
		`[]`, ``, `null`, `{}`, `[null]`, `[{"token":"x"}]`, "\xff",
	} {
		f.Add(seed, "key", "table")
	}
	f.Fuzz(func(t *testing.T, value, key, table string) {
		if !utf8.ValidString(key) || !utf8.ValidString(table) || strings.ContainsRune(value, 0) {
			return // no key or environment has these
		}
		env := envOf(map[string]string{heldVariable: value})
		held := heldByOuterRuns(env)
		added := heldKey{Key: key, Table: table, Store: "/f", Token: 1}
		b, err := json.Marshal(append(slices.Clone(held), added))
		if err != nil {
			t.Fatal(err)
		}
		inside := envOf(map[string]string{heldVariable: string(b)})
		if got := heldByOuterRuns(inside); !slices.Equal(got, append(slices.Clone(held), added)) {
			t.Errorf("%q and %+v was passed on as %s, which reads as %+v", value, added, b, got)
		}
		if table != "" && !setByRun(inside, table, "/f") {
			t.Errorf("%s does not say that this run has set the table", b)
		}
		deeper, err := json.Marshal(append(slices.Clone(held), added, added))
		if begins := heldBegins([]string{heldVariable + "=" + string(b)}); err != nil || begins == "" || !strings.HasPrefix(string(deeper), begins) {
			t.Errorf("%s does not begin as %s: %q", deeper, b, begins)
		}
	})
}

// FuzzFlags reads what people write: what is accepted is not negative, and accepted
// again as the command shows it; what is not is told in words.
func FuzzFlags(f *testing.F) {
	for _, seed := range []string{"30", "1h30m", "0.5", "2d", "-1", "1e9", "NaN", "inf", "0x1p-2", "9223372036s", "key=id,sort=x,ttl=-", "key=", "ttl=a,ttl=b", "TERM", "SIGKILL", "9", "-9", "64"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseDuration(s); err != nil {
			if !strings.Contains(err.Error(), "use a duration") {
				t.Errorf("%q: %v", s, err)
			}
		} else if again, err := parseDuration(wording.Duration(d)); d < 0 || err != nil || again != d {
			t.Errorf("%q reads as %v, which is shown as %s and reads as %v, %v", s, d, wording.Duration(d), again, err)
		}
		var n, again store.Attributes
		if err := n.Set(s); err != nil {
			if err.Error() == "" {
				t.Errorf("%q is refused without a word", s)
			}
		} else if err := again.Set(n.String()); err != nil || n != again {
			t.Errorf("%q reads as %s, and that as %s, %v", s, &n, &again, err)
		}
		if sig, err := process.ParseSignal(s); err == nil && sig <= 0 {
			t.Errorf("%q is signal %d", s, sig)
		}
	})
}

// FuzzRaw compares what get --raw has written: a text is the same as itself however it
// is laid out, and as no other but for the order in its sets.
func FuzzRaw(f *testing.F) {
	const raw = `{"key":{"S":"job"},"set":{"SS":["a","b"]},"m":{"M":{"l":{"L":[{"N":"1"},{"NULL":true}]}}}}`
	for _, other := range []string{raw, strings.Replace(raw, `"a","b"`, `"b","a"`, 1), strings.Replace(raw, `"1"`, `"2"`, 1), `{}`, ``, raw + "]", raw + raw, `{"N":9007199254740992}`} {
		f.Add([]byte(raw), []byte(other))
	}
	f.Add([]byte(`{"N":9007199254740993}`), []byte(`{"N":9007199254740992}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if sameRaw(a, b) != sameRaw(b, a) {
			t.Errorf("%s and %s: it depends on who asks", a, b)
		}
		one := ordered(a)
		if (one != nil) != json.Valid(a) || sameRaw(a, a) != (one != nil) {
			t.Fatalf("%q: JSON %v, the same as itself %v", a, json.Valid(a), sameRaw(a, a))
		}
		if one == nil {
			return
		}
		if !bytes.Equal(ordered(one), one) || !sameRaw(a, indented(a)) {
			t.Errorf("%q is not the same in another layout: %s", a, one)
		}
		if sameRaw(a, b) && letters(a) != letters(b) && utf8.Valid(a) && utf8.Valid(b) && !bytes.ContainsAny(append(slices.Clone(a), b...), `\<>&`) && unique(a) && unique(b) {
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
