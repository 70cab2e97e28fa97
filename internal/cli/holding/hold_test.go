package holding

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestRenewalFailureMessageStatesTimeoutAndPrecedingError(t *testing.T) {
	throttled, late := &types.ProvisionedThroughputExceededException{}, context.DeadlineExceeded
	for name, test := range map[string]struct {
		failed []error
		want   []string
	}{
		"throttled":                          {[]error{throttled}, []string{"throttled: "}},
		"no answer":                          {[]error{late, late}, []string{"no answer in time"}},
		"throttled, then no answer":          {[]error{throttled, late, late}, []string{"no answer in time", "; before that: throttled: "}},
		"throttled after no answer":          {[]error{late, throttled}, []string{"throttled: "}},
		"throttled, renewed, then no answer": {[]error{throttled, nil, late}, []string{"no answer in time"}},
		"throttled, then renewed":            {[]error{throttled, nil}, nil},
	} {
		r := newRenewals(nil, "here")
		for _, err := range test.failed {
			if err != nil {
				err = &leasehold.OpError{Op: "renew", Table: "locks", Key: leasehold.Key{Partition: "k"}, Err: err}
			}
			r.fails(leasehold.Key{Partition: "k"}, err)
		}
		why := r.why()
		rest := why
		for _, part := range test.want {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s: %q", name, why)
			}
			rest = after
		}
		if (why == "") != (test.want == nil) || strings.Contains(why, "before that") != (len(test.want) > 1) || strings.Count(why, "no answer")+strings.Count(why, "throttled: ") != len(test.want) {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// FuzzNestedRunPassesKeysOfOuterRunsToCMD fuzzes LEASEHOLD_HELD: in this variable, "leasehold
// run" passes its held keys to CMD. A nested run adds its own key to the fuzzed value. The result
// must contain the keys of the outer runs, and then the added key.
func FuzzNestedRunPassesKeysOfOuterRunsToCMD(f *testing.F) {
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
		what := fmt.Sprintf("keys in %s, written from %q with %+v", b, value, added)
		lab.Want(t, what, outerKeys(inside), append(slices.Clone(held), added))
		if table != "" && !SetByRun(inside, table, "/f") {
			t.Errorf("SetByRun returned false for %s", b)
		}
		deeper, err := json.Marshal(append(slices.Clone(held), added, added))
		if begins := outerBegins(string(b)); err != nil || begins == "" || !strings.HasPrefix(string(deeper), begins) {
			t.Errorf("%s does not begin like %s: %q", deeper, b, begins)
		}
	})
}

// envWith returns an environment in which LEASEHOLD_HELD has this value.
func envWith(held string) func(string) (string, bool) {
	return func(name string) (string, bool) { return held, name == heldVariable }
}
