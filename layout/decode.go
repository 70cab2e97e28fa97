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

// Decode reads a native record. Of a released one only isReleased, kind and
// the token are looked at: damage elsewhere does not keep it from being
// granted, because a grant writes all of it anew.
func (p native) Decode(item protocol.Item) (protocol.Record, error) {
	d := decoder{item: item}
	r := protocol.Record{Key: protocol.Key{Partition: d.text(p.partition)}}
	if p.sort != "" {
		r.Key.Sort = d.text(p.sort)
	}
	if _, ok := item[attrKind]; ok {
		d.fail(attrKind, "is there: the row belongs to something other than a plain lock, or to a newer leasehold")
	}
	if _, ok := item[attrReleased]; ok {
		if d.text(attrReleased) != "1" {
			d.fail(attrReleased, `is there but not "1"`)
		}
		r.Released = true
	}
	token := d.token()
	if r.Released {
		if d.err != nil {
			return protocol.Record{Key: r.Key}, d.err
		}
		d.lenient = true
	}
	r.Owner = d.text(attrOwner)
	r.Version = d.text(attrVersion)
	r.Lease = d.lease()
	r.Data = d.binary(attrData)
	if protocol.HasClientID(r.Owner) {
		// A peer that carries unknown attributes forward into its own grant
		// does not make them its own.
		r.Token = token
		r.Grant = d.text(attrGrant)
		r.GrantedAt = d.time(attrGrantedAt, time.UnixMilli)
	}
	if p.ttl != "" {
		r.ExpiresAt = d.time(p.ttl, func(s int64) time.Time { return time.Unix(s, 0) })
	}
	for name, v := range item {
		if !p.Reserved(name) {
			if r.Attributes == nil {
				r.Attributes = protocol.Item{}
			}
			r.Attributes[name] = v
		}
	}
	if d.err != nil {
		return protocol.Record{Key: r.Key}, d.err
	}
	return r, nil
}

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

func (d *decoder) lease() time.Duration {
	s := d.text(attrLease)
	lease, err := parseLease(s)
	if err != nil && s != "" {
		d.fail(attrLease, fmt.Sprintf("is %q: %v", s, err))
	}
	return lease
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
