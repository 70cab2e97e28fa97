package holding

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// FuzzHeld parses values of LEASEHOLD_HELD, the variable in which leasehold run passes its
// held keys to CMD. A nested run adds its own keys to an arbitrary value, and must find
// them in the result.
func FuzzHeld(f *testing.F) {
	for _, seed := range []string{
		`[{"key":"job","table":"locks","store":"/f","grant":"g"}]`, `[{"key":"a","sortKey":"s","table":"t","store":"aws"},{"key":"b","table":"t","store":"aws","grant":"h"}]`,
		`[]`, ``, `null`, `{}`, `[null]`, `[{"grant":1}]`, "\xff",
	} {
		f.Add(seed, "key", "table")
	}
	f.Fuzz(func(t *testing.T, value, key, table string) {
		if !utf8.ValidString(key) || !utf8.ValidString(table) || strings.ContainsRune(value, 0) {
			return // skipped, because no key and no environment can contain these bytes
		}
		env := envWith(value)
		held := outerKeys(env)
		added := outerKey{Key: key, Table: table, Store: "/f", Grant: "g"}
		b := lab.Must(json.Marshal(append(slices.Clone(held), added)))(t)
		inside := envWith(string(b))
		if got := outerKeys(inside); !slices.Equal(got, append(slices.Clone(held), added)) {
			t.Errorf("%q and %+v was passed on as %s, which reads as %+v", value, added, b, got)
		}
		if table != "" && !SetByRun(inside, table, "/f") {
			t.Errorf("%s does not say that this run has set the table", b)
		}
		deeper, err := json.Marshal(append(slices.Clone(held), added, added))
		if begins := outerBegins(string(b)); err != nil || begins == "" || !strings.HasPrefix(string(deeper), begins) {
			t.Errorf("%s does not begin as %s: %q", deeper, b, begins)
		}
	})
}

// envWith returns an environment in which LEASEHOLD_HELD has this value.
func envWith(held string) func(string) (string, bool) {
	return func(name string) (string, bool) { return held, name == heldVariable }
}
