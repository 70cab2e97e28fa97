package records

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// decoder decodes the attributes of one item. The methods of decoder store the first error in
// the field err, and continue.
type decoder struct {
	item    protocol.Item
	lenient bool // a damaged attribute counts as absent, and is not an error
	err     error
}

// mapOf returns a decoder for the content of the map in the named attribute. It returns nil if the
// item has no such attribute, or if the attribute is not a map.
func mapOf(item protocol.Item, name string) *decoder {
	m, ok := item[name].(*types.AttributeValueMemberM)
	if !ok {
		return nil
	}
	return &decoder{item: m.Value}
}

func (d *decoder) fail(name, problem string) {
	if d.err == nil && !d.lenient {
		d.err = &protocol.DecodeError{Attribute: name, Problem: problem}
	}
}

// record returns r if d has no error. Otherwise it returns the error, and a record that contains
// only the key of r.
func (d *decoder) record(r protocol.Record) (protocol.Record, error) {
	if d.err != nil {
		return protocol.Record{Key: r.Key}, d.err
	}
	return r, nil
}

func (d *decoder) has(name string) bool { return d.item[name] != nil }

func (d *decoder) required(name string) {
	if !d.has(name) {
		d.fail(name, "is missing")
	}
}

// key returns the item's key. It records an error if the key attributes do not have the
// types and values of schema s.
func (d *decoder) key(s schema) protocol.Key {
	k := protocol.Key{Partition: d.text(s.Partition)}
	switch {
	case s.SortNumber:
		d.required(s.Sort)
		n, ok := d.integer(s.Sort)
		if ok && n < 0 {
			d.fail(s.Sort, fmt.Sprintf("is %d: it must not be negative", n))
		}
		k.Sort = strconv.FormatInt(n, 10)
	case s.Sort != "":
		k.Sort = d.text(s.Sort)
	}
	return k
}

// kind checks the item's attribute "kind", and records an error unless the attribute has the wanted
// value. If want is empty, the item must not have this attribute: the record of a plain lock has
// none.
func (d *decoder) kind(want string) {
	v, _ := d.item[attrKind].(*types.AttributeValueMemberS)
	switch {
	case want == "" && d.has(attrKind):
		d.fail(attrKind, "is present: the row is not a plain lock, or was written by a newer leasehold")
	case want != "" && (v == nil || v.Value != want):
		d.fail(attrKind, fmt.Sprintf("is not %q", want))
	}
}

// text returns the string in the named attribute. It records an error if the attribute is missing,
// is no string, or is empty.
func (d *decoder) text(name string) string {
	s := d.name(name)
	if v, ok := d.item[name].(*types.AttributeValueMemberS); ok && v.Value == "" {
		d.fail(name, "is empty")
	}
	return s
}

// name returns the string in the named attribute. It records an error if the attribute is missing
// or is no string. An empty string is allowed: another library may write an empty owner, for
// example from an environment variable that was not set.
func (d *decoder) name(name string) string {
	switch v := d.item[name].(type) {
	case nil:
		d.fail(name, "is missing")
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		d.fail(name, "is not a string")
	}
	return ""
}

func (d *decoder) binary(name string) []byte {
	switch v := d.item[name].(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberB:
		if v.Value == nil {
			return []byte{}
		}
		return v.Value
	default:
		d.fail(name, "is not binary")
		return nil
	}
}

// number returns the number in the named attribute. The number may be in any form: 20, 20.0 and 2e1
// are the same.
func (d *decoder) number(name string) (n *big.Float, ok bool) {
	switch v := d.item[name].(type) {
	case nil:
		return nil, false
	case *types.AttributeValueMemberN:
		if !isNumber(v.Value) {
			d.fail(name, fmt.Sprintf("is %.60q, not a number of DynamoDB", v.Value))
			return nil, false
		}
		n, _, err := big.ParseFloat(v.Value, 10, exact, big.ToNearestEven)
		if err != nil {
			d.fail(name, fmt.Sprintf("is %.60q, not a number", v.Value))
			return nil, false
		}
		return n, true
	default:
		d.fail(name, "is not a number")
		return nil, false
	}
}

// isNumber reports whether s has the characters of a number and can be parsed safely. Numbers from
// DynamoDB have at most 38 digits, and exponents from -130 to 125. Another server may send any
// text: even 1e99999999 may need a gigabyte of memory to parse.
func isNumber(s string) bool {
	// Both limits are far above DynamoDB's own. A number of 300 characters is long enough for
	// 1e125 with all its zeros.
	const longest, most = 300, 300
	digits, power, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > longest || strings.Trim(digits, "+-.0123456789") != "" {
		return false
	}
	n, err := strconv.Atoi(power)
	return power == "" || err == nil && -most <= n && n <= most
}

// exact is a precision in bits for a big.Float. It is enough for every integer of up to 38
// digits, the most that DynamoDB stores.
const exact = 128

func (d *decoder) integer(name string) (int64, bool) {
	if v, ok := d.item[name].(*types.AttributeValueMemberN); ok {
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return n, true // most numbers are plain integers
		}
	}
	f, ok := d.number(name)
	if !ok {
		return 0, false
	}
	n, accuracy := f.Int64()
	if accuracy != big.Exact {
		d.fail(name, fmt.Sprintf("is %s, not an integer in range", f.Text('g', 20)))
		return 0, false
	}
	return n, true
}

// floored returns the number in the named attribute as an int64. It rounds a fraction down. It
// returns the nearest int64 for a number that is out of range.
func (d *decoder) floored(name string) (int64, bool) {
	f, ok := d.number(name)
	if !ok {
		return 0, false
	}
	n, accuracy := f.Int64()
	if accuracy == big.Above && n > math.MinInt64 {
		n-- // Int64 has rounded toward zero
	}
	return n, true
}

// clamped returns the number in the named attribute, rounded up to an integer. The result is at
// least 0, and at most the parameter "most". It is 0 if the attribute is missing.
func (d *decoder) clamped(name string, most int64) int64 {
	f, ok := d.number(name)
	switch {
	case !ok || f.Sign() <= 0:
		return 0
	case f.Cmp(new(big.Float).SetInt64(most)) >= 0:
		return most
	}
	n, accuracy := f.Int64()
	if accuracy != big.Exact {
		n++ // Int64 has rounded down
	}
	return n
}

func (d *decoder) token() int64 {
	n, ok := d.integer(attrToken)
	if ok && (n < 0 || n > protocol.MaxToken) {
		d.fail(attrToken, fmt.Sprintf("is %d: it must be from 0 to 2^53-2", n))
	}
	return n
}

func (d *decoder) time(name string, from func(int64) time.Time) time.Time {
	n, ok := d.integer(name)
	if !ok {
		return time.Time{}
	}
	return from(n)
}

// isOurs reports whether leasehold has written the grant that a held record shows. It checks three
// things, as none is a proof alone:
//
//   - The owner has leasehold's form. But a user may configure another library with such an owner.
//   - The record has leasehold's attributes. But they may be left from an earlier grant, because
//     dynamolock does not remove them, nor does the Java client when it updates a record.
//   - The version has leasehold's form. But the Java client writes versions in the same form.
//
// So isOurs is wrong only if a Java client whose owner has leasehold's form has updated a record
// that leasehold wrote.
func (d *decoder) isOurs(owner, version string) bool {
	id, _ := d.item[attrGrant].(*types.AttributeValueMemberS)
	hasGrant := d.has(attrToken) || id != nil && protocol.IsVersion(id.Value) // every grant by leasehold writes both
	return protocol.HasClientID(owner) && protocol.IsVersion(version) && hasGrant
}

// leastLease is the lease that leasehold assumes if another library has stored a lease of zero or
// less. It is short because that library's clients also take the key over as soon as they have read
// the same record twice.
const leastLease = time.Millisecond

// lease returns the lease in the named string attribute: a number of milliseconds, or a Go
// duration. It returns 0 for a negative lease.
func (d *decoder) lease(name string) time.Duration {
	s := d.text(name)
	lease, err := parseLease(s)
	if err != nil && s != "" {
		d.fail(name, fmt.Sprintf("is %.60q: %v", s, err))
	}
	return lease
}

// seconds returns the lease in the named number attribute: a number of seconds, which may be a
// fraction. It returns 0 for a negative lease.
func (d *decoder) seconds(name string) time.Duration {
	d.required(name)
	s, ok := d.number(name)
	if !ok {
		return 0
	}
	f, _ := s.Float64()
	return durations.Scale(1, math.Ceil(max(f, 0)*float64(time.Second)))
}

// heldLease returns the lease of a held record, or leastLease if the lease is shorter. In a grant
// by leasehold, a lease of zero or less is an error. Grants by other libraries may have any lease.
func (d *decoder) heldLease(name string, lease time.Duration, isOurs bool) time.Duration {
	if isOurs && lease <= 0 {
		d.fail(name, "must be above zero")
	}
	return max(lease, leastLease)
}

// parseLease returns the lease in s: milliseconds, as the Java client writes it, or a Go
// duration, as dynamolock writes it. A number of milliseconds that is too large for a
// Duration becomes the longest Duration. A negative lease becomes 0.
func parseLease(s string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return durations.Times(time.Millisecond, max(ms, 0)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("neither milliseconds nor a Go duration")
	}
	return max(d, 0), nil
}
