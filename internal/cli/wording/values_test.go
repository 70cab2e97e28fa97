package wording

import (
	"testing"

	"github.com/leasehold-go/leasehold"
)

func TestKeysAreAgreesInNumber(t *testing.T) {
	for want, keys := range map[string][]leasehold.Key{
		"a is":           leasehold.Keys("a"),
		"a and b are":    leasehold.Keys("a", "b"),
		"a, b and c are": leasehold.Keys("a", "b", "c"),
	} {
		if got := KeysAre(keys); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
