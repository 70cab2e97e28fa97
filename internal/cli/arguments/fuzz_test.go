package arguments_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// FuzzPrintedFlagValueParsesToSameValue parses a text as a duration, as attribute names and as a
// signal. An accepted duration or list of names must be the same after printing and parsing. A
// duration must not be negative, and a signal must be positive.
func FuzzPrintedFlagValueParsesToSameValue(f *testing.F) {
	for _, seed := range []string{"30", "1h30m", "0.5", "2d", "-1", "1e9", "NaN", "inf", "0x1p-2", "9223372036s", "key=id,sort=x,ttl=-", "key=", "ttl=a,ttl=b", "TERM", "SIGKILL", "9", "-9", "64"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := wording.ParseDuration(s); err != nil {
			if !strings.Contains(err.Error(), "use a duration") {
				t.Errorf("%q: %v", s, err)
			}
		} else if again, err := wording.ParseDuration(wording.Duration(d)); d < 0 || err != nil || again != d {
			t.Errorf("%q parses as %v, which is printed as %s and parses as %v, %v", s, d, wording.Duration(d), again, err)
		}
		var n, again store.Attributes
		if err := n.Set(s); err != nil {
			if err.Error() == "" {
				t.Errorf("%q is rejected with an empty error", s)
			}
		} else if err := again.Set(n.String()); err != nil || !maps.Equal(n, again) {
			t.Errorf("%q parses as %s, which parses as %s, %v", s, &n, &again, err)
		}
		if sig, err := process.ParseSignal(s); err == nil && sig <= 0 {
			t.Errorf("%q parses as signal %d", s, sig)
		}
	})
}
