package localdynamo

import (
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Numbers are stored as text in a canonical form, such as "-0.5": no exponent, no superfluous
// zeros, and never "-0". Two numbers are equal if and only if their texts are equal. DynamoDB also
// returns numbers in this form.

const (
	maxDigits   = 38   // maximum number of significant digits in a number
	maxExponent = 125  // maximum exponent e of a number that is written as d.ddd x 10^e
	minExponent = -130 // minimum exponent e of a number that is written as d.ddd x 10^e
)

// arithmetic is the context for additions and subtractions. Its precision is high enough for the
// exact sum of any two DynamoDB numbers. The function "canonical" refuses the sum if it has more
// digits than DynamoDB allows.
var arithmetic = apd.BaseContext.WithPrecision(maxExponent - minExponent + 2)

const (
	textDigits    = "Attempting to store more than 38 significant digits in a Number"
	textOverflow  = "Number overflow. Attempting to store a number with magnitude larger than supported range"
	textUnderflow = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
	textNoNumber  = "The parameter cannot be converted to a numeric value"
)

// parseNumber returns the canonical form of a number that a request contains.
func parseNumber(s string) (string, error) {
	if isCanonicalInteger(s) {
		return s, nil
	}
	if s == "" {
		return "", invalid(textNoNumber)
	}
	// apd also accepts NaN and Infinity, which DynamoDB refuses as numbers.
	if strings.Trim(s, "0123456789+-.eE") != "" || len(s) > 1000 {
		return "", invalid(textNoNumber + ": " + s)
	}
	var d apd.Decimal
	if _, _, err := d.SetString(s); err != nil || d.Form != apd.Finite {
		return "", invalid(textNoNumber + ": " + s)
	}
	return canonical(&d)
}

// isCanonicalInteger reports whether s is an integer in canonical form. This is true for most
// numbers in requests, which then need no further parsing.
func isCanonicalInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) == 0 || len(digits) > maxDigits || digits[0] == '0' && s != "0" {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// canonical returns the canonical form of d. It returns an error if d is outside DynamoDB's
// range of numbers.
func canonical(d *apd.Decimal) (string, error) {
	d.Reduce(d)
	if d.IsZero() {
		return "0", nil
	}
	digits := d.NumDigits()
	exponent := int64(d.Exponent) + digits - 1
	switch {
	case exponent > maxExponent:
		return "", invalid(textOverflow)
	case exponent < minExponent:
		return "", invalid(textUnderflow)
	case digits > maxDigits:
		return "", invalid(textDigits)
	}
	return d.Text('f'), nil
}

// decimal parses a number in canonical form.
func decimal(canonical string) *apd.Decimal {
	d, _, err := apd.NewFromString(canonical)
	if err != nil {
		panic("localdynamo: a stored number is malformed: " + canonical)
	}
	return d
}

// addNumbers returns the sum a+b or, if minus is true, the difference a-b.
func addNumbers(a, b string, minus bool) (string, error) {
	operation := arithmetic.Add
	if minus {
		operation = arithmetic.Sub
	}
	var sum apd.Decimal
	if _, err := operation(&sum, decimal(a), decimal(b)); err != nil {
		return "", invalid(textOverflow)
	}
	return canonical(&sum)
}

// compareNumbers compares two canonical numbers by value. It returns a negative number if a <
// b, zero if a == b, and a positive number if a > b.
func compareNumbers(a, b string) int {
	if a == b {
		return 0
	}
	negative := a[0] == '-'
	if negative != (b[0] == '-') {
		if negative {
			return -1
		}
		return 1
	}
	// Positive integers with the same number of digits are in the order of their texts.
	// Negative integers are in the reverse order.
	if len(a) == len(b) && !strings.Contains(a, ".") && !strings.Contains(b, ".") {
		if (a < b) != negative {
			return -1
		}
		return 1
	}
	return decimal(a).Cmp(decimal(b))
}

// numberParts splits a canonical number into its sign, its significant digits and an exponent.
// The absolute value of the number is 0.digits x 10^exponent. Zero has no digits.
func numberParts(canonical string) (negative bool, digits string, exponent int) {
	rest, negative := strings.CutPrefix(canonical, "-")
	whole, fraction, _ := strings.Cut(rest, ".")
	if whole == "0" {
		whole = ""
	}
	digits = whole + fraction
	exponent = len(whole)
	significant := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(significant)
	return negative, strings.TrimRight(significant, "0"), exponent
}

// numberSize returns the size of a number in bytes, as DynamoDB counts it. The size is half the
// number of significant digits, rounded up, plus one. A minus sign adds one more byte.
func numberSize(canonical string) int {
	negative, digits, _ := numberParts(canonical)
	size := 1 + (len(digits)+1)/2
	if negative {
		size++
	}
	return size
}
