package grants

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// FuzzGrantFile parses files for the flag --grant. If a file is accepted, writing its grant
// and reading it again returns the same grant, and no proper prefix of the written file is
// accepted.
func FuzzGrantFile(f *testing.F) {
	for _, seed := range []string{
		`{"table":"locks","key":"job","owner":"web/812","token":42,"grant":"g","versions":["v"],"leaseMs":600000,"trustedUntil":"2026-11-21T12:00:00.000Z","file":"/var/lib/leasehold/locks.db"}`,
		`{"table":"locks","key":"job","sortKey":"s","owner":"o","token":1,"grant":"g","versions":["v","w"],"leaseMs":1,"trustedUntil":"2026-11-21T12:00:00Z","region":"eu-west-1","account":"123456789012"}`,
		`{"table":"locks","grant":"g","leaseMs":-1,"trustedUntil":"2026-11-21T12:00:00Z"}`, `{"table":"locks","grant":"g","leaseMs":18446744073710,"trustedUntil":"2026-11-21T12:00:00Z"}`,
		`{}`, ``, `null`, `not a grant`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, ok := parse(b)
		if !ok {
			return
		}
		if g.ID == "" || g.Table == "" || g.Lease < 0 || leaseEnds(g).Before(g.TrustedUntil) {
			t.Errorf("%q reads as %+v", b, g)
		}
		written := lab.Must(json.Marshal(g))(t)
		again, ok := parse(written)
		again.TrustedUntil = g.TrustedUntil // the file rounds times to milliseconds, so TrustedUntil may differ
		if !ok || !reflect.DeepEqual(again, g) {
			t.Errorf("%q reads as %+v, which was written as %s and read as %+v", b, g, written, again)
		}
		if g.At.differs(again.At) != "" {
			t.Errorf("%+v is another place than itself", g.At)
		}
		for cut := range written {
			if _, ok := parse(written[:cut]); ok {
				t.Errorf("a part is taken for a grant: %s", written[:cut])
			}
		}
	})
}
