package localdynamo

import (
	"bytes"
	"cmp"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// internal/conformance tests the number formats that DynamoDB is known to accept. This test
// adds more formats.
func TestNumbersAreStoredInCanonicalForm(t *testing.T) {
	for given, want := range map[string]string{
		"00": "0", "-0.0": "0", "0e10": "0", ".0": "0", "001": "1", "1.0": "1", "1500e-2": "15", "+001.50e2": "150",
		"9007199254740993": "9007199254740993",
	} {
		if got, err := parseNumber(given); err != nil || got != want {
			t.Errorf("%s is kept as %s, %v; want %s", given, got, err, want)
		}
	}
}

func TestInvalidNumberIsRejected(t *testing.T) {
	for _, given := range []string{"abc", " 1", "1e", "--1", "1.2.3", ".", "1_000"} {
		got, err := parseNumber(given)
		if refused, ok := err.(*apiError); !ok || refused.message != textNoNumber+": "+given {
			t.Errorf("%q gives %s, %v", given, got, err)
		}
	}
	got, err := parseNumber("1.1E-131")
	if refused, ok := err.(*apiError); !ok || refused.message != textUnderflow {
		t.Errorf("too small: %s, %v", got, err)
	}
}

// anyNumber generates the text of a number in one of several notations.
func anyNumber() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`-?[0-9]{1,20}`),
		rapid.StringMatching(`-?[0-9]{0,12}\.[0-9]{1,12}`),
		rapid.StringMatching(`-?[0-9]\.[0-9]{0,30}[eE]-?[0-9]{1,2}`),
		rapid.SampledFrom([]string{"0", "-0", "1", "-1", "10", "9", "0.1", "1E125", "-1E125", "1E-130", "-1E-130"}),
	)
}

// parsed returns the canonical text of a number, which the engine stores.
func parsed(t *rapid.T, s string) string {
	n, err := parseNumber(s)
	ok(t, err)
	return n
}

func rational(t *rapid.T, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no number to math/big", s)
	}
	return r
}

func TestNumbersCompareByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := anyNumber().Draw(t, "one"), anyNumber().Draw(t, "two")
		a, b := parsed(t, one), parsed(t, two)
		x, y := rational(t, one), rational(t, two)
		if rational(t, a).Cmp(x) != 0 {
			t.Fatalf("%s is kept as %s", one, a)
		}
		if (a == b) != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s are kept as %s and %s", one, two, a, b)
		}
		if got := compareNumbers(a, b); got != x.Cmp(y) {
			t.Fatalf("compareNumbers(%s, %s) = %d", a, b, got)
		}
		sortable := bytes.Compare(appendSortableNumber(nil, a), appendSortableNumber(nil, b))
		if sortable != x.Cmp(y) {
			t.Fatalf("the sortable forms of %s and %s compare as %d", a, b, sortable)
		}
	})
}

func TestNumberSumsAreExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := parsed(t, anyNumber().Draw(t, "a")), parsed(t, anyNumber().Draw(t, "b"))
		minus := rapid.Bool().Draw(t, "minus")
		want := new(big.Rat).Add(rational(t, a), rational(t, b))
		if minus {
			want.Sub(rational(t, a), rational(t, b))
		}
		sum, err := addNumbers(a, b, minus)
		if err != nil {
			if _, digits, _ := numberParts(want.FloatString(131)); len(digits) <= maxDigits {
				t.Fatalf("%s and %s: %v", a, b, err)
			}
			return
		}
		if rational(t, sum).Cmp(want) != 0 {
			t.Fatalf("%s and %s give %s, want %s", a, b, sum, want.RatString())
		}
	})
}

func TestStringKeysAreSortedByBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'b', 0xff, '😀'}), 0, 6, -1)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		one := appendSortable(nil, value{kind: kindS, text: a})
		two := appendSortable(nil, value{kind: kindS, text: b})
		if got := bytes.Compare(one, two); got != cmp.Compare(a, b) {
			t.Fatalf("the sortable forms of %q and %q compare as %d", a, b, got)
		}
		if a != b && bytes.HasPrefix(one, two) {
			t.Fatalf("the sortable form of %q begins with that of %q", a, b)
		}
	})
}
