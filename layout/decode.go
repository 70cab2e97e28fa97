package layout

import (
	"errors"
	"fmt"
	"math"
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

// text reads a required string.
func (d *decoder) text(name string) string {
	switch v := d.item[name].(type) {
	case nil:
		d.fail(name, "is missing")
	case *types.AttributeValueMemberS:
		if v.Value == "" {
			d.fail(name, "is empty")
		}
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

func (d *decoder) integer(name string) (n int64, ok bool) {
	switch v := d.item[name].(type) {
	case nil:
		return 0, false
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			d.fail(name, fmt.Sprintf("is %s: not an integer in range", v.Value))
			return 0, false
		}
		return n, true
	default:
		d.fail(name, "is not a number")
		return 0, false
	}
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

// lease reads a lease in either spelling of a string.
func (d *decoder) lease(name string) time.Duration {
	s := d.text(name)
	lease, err := parseLease(s)
	if err != nil && s != "" {
		d.fail(name, fmt.Sprintf("is %q: %v", s, err))
	}
	return lease
}

// seconds reads a lease as a number of seconds, which may have a fraction.
func (d *decoder) seconds(name string) time.Duration {
	d.required(name)
	v, ok := d.item[name].(*types.AttributeValueMemberN)
	if !ok {
		d.fail(name, "is not a number")
		return 0
	}
	s, err := strconv.ParseFloat(v.Value, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), !(s > 0):
		d.fail(name, fmt.Sprintf("is %s: a lease is above zero", v.Value))
		return 0
	case s >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(math.Ceil(s * float64(time.Second)))
}

// parseLease reads either spelling: the Java client's milliseconds and
// dynamolock's Go duration. What is too long for a Duration saturates: it is
// somebody's "for ever".
func parseLease(s string) (time.Duration, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		switch {
		case ms <= 0:
			return 0, errors.New("a lease is above zero")
		case ms > math.MaxInt64/int64(time.Millisecond):
			return math.MaxInt64, nil
		}
		return time.Duration(ms) * time.Millisecond, nil
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, errors.New("neither milliseconds nor a Go duration")
	case d <= 0:
		return 0, errors.New("a lease is above zero")
	}
	return d, nil
}
