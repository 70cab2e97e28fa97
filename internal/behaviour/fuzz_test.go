package behaviour_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold"
)

// FuzzGrant parses grants as other processes may have written them. No lease may be
// negative or differ from the written one. A grant that was parsed can be written and
// parsed again.
func FuzzGrant(f *testing.F) {
	const grant = `{"table":"locks","key":"job","owner":"o","token":42,"grant":"g","versions":["v"],"leaseMs":20000,"trustedUntil":"2026-11-21T12:00:00.000Z"}`
	for _, seed := range []string{
		grant, `{}`, `null`, `[]`, `{"key":"job"}`, strings.Replace(grant, "20000", "-1", 1),
		strings.Replace(grant, "20000", "18446744073710", 1), strings.Replace(grant, `"owner"`, `"sortKey":"s","owner"`, 1),
		strings.Replace(grant, "2026-11-21T12:00:00.000Z", "9999-12-31T23:59:59-12:00", 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var g leasehold.Grant
		if err := json.Unmarshal(b, &g); err != nil {
			if json.Valid(b) && !strings.HasPrefix(err.Error(), "leasehold: grant") {
				t.Errorf("%s: %v", b, err)
			}
			return
		}
		var again leasehold.Grant
		rereads(t, g, &again)
		if again.TrustedUntil = g.TrustedUntil; g.Lease < 0 || !reflect.DeepEqual(g, again) {
			t.Errorf("%s reads as %+v, and that as %+v", b, g, again)
		}
	})
}

// rereads writes v as JSON, and parses that JSON into its last argument.
func rereads(t *testing.T, v, again any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	if err := json.Unmarshal(b, again); err != nil {
		t.Fatalf("%+v was written as %s: %v", v, b, err)
	}
}
