package cli

import (
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
