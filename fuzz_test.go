package leasehold_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// FuzzObservation reads observations and grants as other processes have written them:
// no lease is negative or another than was written, what was read reads back as it
// is, and what is imported makes nobody seen for longer than a clock can tell.
func FuzzObservation(f *testing.F) {
	for _, seed := range []string{
		`{"key":"job","version":"v","leaseMs":20000,"since":"2026-11-21T12:00:00.000Z","boot":"b","bootMs":1000}`,
		`{"key":"job","sortKey":"s","version":"v","leaseMs":1,"since":"2026-11-21T12:00:00.123456789+02:00"}`,
		`{}`, `null`, `{"key":"job"}`, `[]`, `{"leaseMs":-1,"since":"2026-11-21T12:00:00Z"}`,
		`{"key":"job","version":"v","leaseMs":18446744073710,"since":"2026-11-21T12:00:00Z","boot":"b","bootMs":18446744073710}`,
		`{"key":"job","version":"v","leaseMs":1,"since":"9999-12-31T23:59:59-12:00"}`, `{"key":"job","version":"v","leaseMs":1,"since":"0001-01-01T00:00:00Z"}`,
		`{"table":"locks","key":"job","owner":"o","token":42,"grant":"g","versions":["v"],"leaseMs":20000,"trustedUntil":"2026-11-21T12:00:00.000Z"}`,
	} {
		f.Add([]byte(seed), int64(time.Second))
	}
	db := localdynamo.New().Client()
	f.Fuzz(func(t *testing.T, b []byte, maxSkew int64) {
		var g leasehold.Grant
		if err := json.Unmarshal(b, &g); err == nil {
			var again leasehold.Grant
			rereads(t, g, &again)
			if again.TrustedUntil = g.TrustedUntil; g.Lease < 0 || !reflect.DeepEqual(g, again) {
				t.Errorf("%s reads as %+v, and that as %+v", b, g, again)
			}
		}
		var o leasehold.Observation
		if err := json.Unmarshal(b, &o); err != nil {
			if json.Valid(b) && !strings.HasPrefix(err.Error(), "leasehold: observation") {
				t.Errorf("%s: %v", b, err)
			}
			return
		}
		var again leasehold.Observation
		rereads(t, o, &again)
		if again.Since = o.Since; o.Lease < 0 || again != o {
			t.Errorf("%s reads as %+v, and that as %+v", b, o, again)
		}
		locks, err := leasehold.New(db, leasehold.Config{Table: "locks"})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(t.Context())
		if err := locks.ImportObservations(time.Duration(maxSkew), o); err != nil {
			if len(locks.Observations()) != 0 || !strings.HasPrefix(err.Error(), "leasehold: ") {
				t.Errorf("%s: %v, and known is %v", b, err, locks.Observations())
			}
			return
		}
		for _, known := range locks.Observations() {
			if known.Key != o.Key || known.Version != o.Version || known.Lease != o.Lease || known.Lease <= 0 || known.Since.After(time.Now()) && known.Since != o.Since {
				t.Errorf("%s was imported as %+v", b, known)
			}
		}
	})
}

// rereads writes v as JSON, and reads that.
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
