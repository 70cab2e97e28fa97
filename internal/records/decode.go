package records

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// decoder reads attributes and keeps the first error.
type decoder struct {
	item    protocol.Item
	lenient bool // whatever is wrong reads as absent
	err     error
}

func (d *decoder) fail(name, problem string) {
	if d.err == nil && !d.lenient {
		d.err = &protocol.DecodeError{Attribute: name, Problem: problem}
	}
}

func (d *decoder) has(name string) bool { return d.item[name] != nil }

func (d *decoder) required(name string) {
	if !d.has(name) {
		d.fail(name, "is missing")
	}
}

// key reads the key, which is damaged if it is of another table.
func (d *decoder) key(s schema) protocol.Key {
	k := protocol.Key{Partition: d.text(s.Partition)}
	switch {
	case s.SortNumber:
		d.required(s.Sort)
		n, ok := d.integer(s.Sort)
		if ok && n < 0 {
			d.fail(s.Sort, fmt.Sprintf("is %d: negative", n))
		}
		k.Sort = strconv.FormatInt(n, 10)
	case s.Sort != "":
		k.Sort = d.text(s.Sort)
	}
	return k
}

// kind refuses rows of another kind than the one wanted; a lock has none.
func (d *decoder) kind(want string) {
	v, _ := d.item[attrKind].(*types.AttributeValueMemberS)
	switch {
	case want == "" && v != nil && v.Value == protocol.KindSemaphore:
		d.fail(attrKind, "is semaphore: the key has permits, which are locks of their own")
	case want == "" && d.has(attrKind):
		d.fail(attrKind, "is there: the row belongs to something other than a plain lock, or to a newer leasehold")
	case want != "" && (v == nil || v.Value != want):
		d.fail(attrKind, fmt.Sprintf("is not %q", want))
	}
}

// text reads a required string that is not empty.
func (d *decoder) text(name string) string {
	s := d.name(name)
	if v, ok := d.item[name].(*types.AttributeValueMemberS); ok && v.Value == "" {
		d.fail(name, "is empty")
	}
	return s
}

// name reads a required string. A peer's owner may be empty: it is what an
// environment variable said that was not set.
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

// number reads a number in any spelling: 20, 20.0 and 2e1 are one.
func (d *decoder) number(name string) (n *big.Float, ok bool) {
	switch v := d.item[name].(type) {
	case nil:
		return nil, false
	case *types.AttributeValueMemberN:
		n, _, err := big.ParseFloat(v.Value, 10, exact, big.ToNearestEven)
		if err != nil {
			d.fail(name, fmt.Sprintf("is %q: not a number", v.Value))
			return nil, false
		}
		return n, true
	default:
		d.fail(name, "is not a number")
		return nil, false
	}
}

// exact is the bits that hold every integer of DynamoDB's numbers, which have
// at most 38 digits.
const exact = 128

func (d *decoder) integer(name string) (int64, bool) {
	f, ok := d.number(name)
	if !ok {
		return 0, false
	}
	n, accuracy := f.Int64()
	if accuracy != big.Exact {
		d.fail(name, fmt.Sprintf("is %s: not an integer in range", f.Text('g', 20)))
		return 0, false
	}
	return n, true
}

// clamped reads a number that peers may make of anything: a fraction is rounded
// up, and what is below 0 or above most is that.
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
		n++ // Int64 cuts it down
	}
	return n
}

func (d *decoder) token() int64 {
	n, ok := d.integer(attrToken)
	if ok && (n < 0 || n > maxToken) {
		d.fail(attrToken, fmt.Sprintf("is %d: not from 0 to 2^53-2", n))
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

// expiry reads the attribute of TTL, if the layout has one.
func (d *decoder) expiry(name string, required bool) time.Time {
	if name == "" {
		return time.Time{}
	}
	if required {
		d.required(name)
	}
	return d.time(name, func(s int64) time.Time { return time.Unix(s, 0) })
}

// isOurs reports whether a held record is a grant of ours. The owner's form is
// not enough: a peer may have been given such a name. Nor are our attributes
// beside it: dynamolock, and the Java client where it updates, carry those of
// an earlier grant into their own. Our version is one that dynamolock never
// writes, and the others write no attribute of ours. That leaves a Java client
// that updates under an owner with the form of ours, which cannot be told.
func (d *decoder) isOurs(owner, version string) bool {
	return protocol.HasClientID(owner) && protocol.IsVersion(version) && d.hasGrant()
}

// hasGrant reports whether there is what one of our grants leaves.
func (d *decoder) hasGrant() bool {
	id, _ := d.item[attrGrant].(*types.AttributeValueMemberS)
	return d.has(attrToken) || id != nil && protocol.IsVersion(id.Value)
}

// leastLease is what a peer's lease counts as that is not above zero. Each peer
// takes such a holder over that it sees unchanged a second time, however soon.
const leastLease = time.Millisecond

// lease reads a lease in either spelling of a string; 0: it is not above zero.
func (d *decoder) lease(name string) time.Duration {
	s := d.text(name)
	lease, err := parseLease(s)
	if err != nil && s != "" {
		d.fail(name, fmt.Sprintf("is %q: %v", s, err))
	}
	return lease
}

// seconds reads a lease as a number of seconds, which may have a fraction; 0:
// it is not above zero.
func (d *decoder) seconds(name string) time.Duration {
	d.required(name)
	s, ok := d.number(name)
	if !ok {
		return 0
	}
	f, _ := s.Float64()
	switch {
	case f <= 0:
		return 0
	case f >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(math.Ceil(f * float64(time.Second)))
}

// heldLease completes the lease of a held record. No lease of ours is below the
// least; a peer's may be, by its configuration.
func (d *decoder) heldLease(name string, lease time.Duration, isOurs bool) time.Duration {
	if isOurs && lease <= 0 {
		d.fail(name, "is not above zero")
	}
	return max(lease, leastLease)
}

// parseLease reads either spelling: the Java client's milliseconds and
// dynamolock's Go duration. What is too long for a Duration saturates: it is
// somebody's "for ever". What is not above zero is 0.
func parseLease(s string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if ms > math.MaxInt64/int64(time.Millisecond) {
			return math.MaxInt64, nil
		}
		return time.Duration(max(ms, 0)) * time.Millisecond, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("neither milliseconds nor a Go duration")
	}
	return max(d, 0), nil
}
