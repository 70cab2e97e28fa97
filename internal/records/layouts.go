// Package records encodes and decodes lock records. For each layout it builds the
// conditional write of every operation, decodes items, and computes the keys of session
// rows. It sends no requests and does not wait. The layouts and their settings are in package
// layout, which users import.
package records

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Of returns the protocol of a layout. The error lists all mistakes in the layout's
// configuration, such as two attributes with the same name.
func Of(l layout.Layout) (protocol.Protocol, error) {
	switch l := l.(type) {
	case layout.Native:
		return newNative(l)
	case layout.AWSLabs:
		return newAWSLabs(l)
	case layout.Dynamolock:
		return newDynamolock(l)
	case layout.PythonDynamoDBLock:
		return newPython(l)
	case layout.DynamoDLM:
		return newDLM(l)
	case layout.DyndbMutex:
		return newMutex(l)
	}
	return nil, fmt.Errorf("layout: %T is not a layout: use a struct of package layout, not a pointer to it", l)
}

// WithMaxSkew is like Of, but for a client whose wall clock is never wrong by more than skew. Zero
// means unknown. Layouts other than Native refuse a skew with errors.ErrUnsupported, because they
// store no end of the lease, or have a MaxSkew of their own.
func WithMaxSkew(l layout.Layout, skew time.Duration) (protocol.Protocol, error) {
	p, err := Of(l)
	if err != nil || skew <= 0 {
		return p, err
	}
	if n, ok := p.(native); ok {
		n.record.skew = skew
		return native{lock{n.record}, n.record}, nil
	}
	return p, fmt.Errorf("layout: %s: %w", l.Name(), errors.ErrUnsupported)
}

// DynamoDB's limits for key values, in bytes (AWS, Service quotas, "Partition
// keys and sort keys").
const (
	maxPartitionBytes = 2048
	maxSortBytes      = 1024
)

// schema describes the key attributes of a layout's table. Its methods check and encode
// keys for requests.
type schema struct {
	protocol.Schema
	sortValue string // sort key that is used if a call does not name one
}

func (s schema) Complete(k protocol.Key) protocol.Key {
	if s.Sort != "" {
		k.Sort = cmp.Or(k.Sort, s.sortValue)
	}
	return k
}

func (s schema) Key(k protocol.Key) (protocol.Item, error) {
	if err := s.CheckKey(k); err != nil {
		return nil, err
	}
	return s.mustKey(k), nil
}

func (s schema) CheckKey(k protocol.Key) error {
	if err := keyBytes("key", k.Partition, maxPartitionBytes); err != nil {
		return err
	}
	switch {
	case s.SortNumber:
		if n, err := strconv.ParseUint(k.Sort, 10, 31); err != nil || strconv.FormatUint(n, 10) != k.Sort {
			return fmt.Errorf("the sort key is %q: in this layout it must be the number of a slot, from 0", k.Sort)
		}
	case s.Sort != "":
		return keyBytes("sort key", k.Sort, maxSortBytes)
	}
	return nil
}

// mustKey returns the key attributes for a key that CheckKey has accepted.
func (s schema) mustKey(k protocol.Key) protocol.Item {
	item := protocol.Item{s.Partition: text(k.Partition)}
	switch {
	case s.SortNumber:
		item[s.Sort] = decimal(k.Sort)
	case s.Sort != "":
		item[s.Sort] = text(k.Sort)
	}
	return item
}

func keyBytes(what, s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty", what)
	case len(s) > most:
		return fmt.Errorf("the %s has %d bytes: DynamoDB allows %d", what, len(s), most)
	case !utf8.ValidString(s):
		// The JSON encoder replaces invalid bytes, so two different keys would become the same.
		return fmt.Errorf("the %s is not UTF-8", what)
	}
	return nil
}

// checkNames returns an error for each attribute name that is used twice. It also returns an error
// if the schema has a default value for the sort key, but no sort key. The parameter "attributes"
// contains the names of the layout's other attributes.
func (s schema) checkNames(layout string, attributes []string) error {
	taken := map[string]string{}
	for _, name := range slices.Concat(attributes, ours) {
		taken[name] = "an attribute of the record"
	}
	var errs []error
	claim := func(role, name string) {
		if by, clash := taken[name]; clash && name != "" {
			errs = append(errs, fmt.Errorf("layout: %s: %s %q is already used as %s: choose another name", layout, role, name, by))
		}
		taken[name] = "the " + role
	}
	claim("partition key", s.Partition)
	claim("sort key", s.Sort)
	if s.sortValue != "" && s.Sort == "" {
		errs = append(errs, fmt.Errorf("layout: %s: SortValue is set without SortKey, the attribute's name", layout))
	}
	claim("TTL attribute", s.TTL)
	return errors.Join(errs...)
}

// newNative returns the protocol of layout Native. The methods in lock.go and versioned.go
// build its writes.
func newNative(n layout.Native) (protocol.Protocol, error) {
	p := javaLike(n.PartitionKey, n.SortKey, n.SortValue, leaseMillis)
	p.TTL = cmp.Or(n.TTL, attrExpiresAt)
	if p.TTL == "-" {
		p.TTL = ""
	} else if !slices.Contains(p.removed, p.TTL) {
		p.removed = append(p.removed, p.TTL)
	}
	p.shares, p.handsOver = true, true
	p.own = append(p.own, oursInNative...)
	return native{lock{p}, p}, p.checkNames(n.Name(), javaAttributes)
}

func newAWSLabs(a layout.AWSLabs) (protocol.Protocol, error) {
	p := javaLike(a.PartitionKey, a.SortKey, a.SortValue, leaseMillis)
	return peers{lock{p}, p, isMillis}, p.checkNames(a.Name(), javaAttributes)
}

// javaLike returns the protocol for layouts AWSLabs, Dynamolock and Native, which use the attribute
// names of the awslabs Java client. The function encodeLease converts a lease to the form that the
// layout stores. Each protocol can also read the forms of the other two.
func javaLike(partition, sort, sortValue string, encodeLease func(time.Duration) types.AttributeValue) versioned {
	p := versioned{
		schema: schema{
			Schema:    protocol.Schema{Partition: cmp.Or(partition, "key"), Sort: sort},
			sortValue: sortValue,
		},
		owner: attrOwner, lease: attrLease, version: attrVersion, released: attrReleased, data: attrData,
		own:         slices.Concat(javaAttributes, []string{attrExpiresAt}),
		encodeLease: encodeLease, decodeLease: (*decoder).lease,
	}
	if p.Partition != attrExpiresAt && p.Sort != attrExpiresAt {
		// A client with layout Native may have left the attribute expiresAt in the record. If
		// expiresAt is the table's TTL attribute, DynamoDB would delete the record of a held
		// lock.
		p.removed = []string{attrExpiresAt}
	}
	return p
}

func leaseMillis(d time.Duration) types.AttributeValue {
	return text(strconv.FormatInt(ceil(d, time.Millisecond), 10))
}

func newDynamolock(d layout.Dynamolock) (protocol.Protocol, error) {
	encode := func(d time.Duration) types.AttributeValue { return text(d.String()) }
	p := javaLike(d.PartitionKey, d.SortKey, d.SortValue, encode)
	return peers{lock{p}, p, isDuration}, p.checkNames(d.Name(), javaAttributes)
}

// pythonCollect is the time from a lease's end to the record's TTL value: a week, not an hour as in
// python_dynamodb_lock. If a holder's clock is behind by more than this time, DynamoDB may delete
// the held record. A write cannot keep the later of two TTL values, because update expressions
// cannot compute a maximum.
const pythonCollect = 7 * 24 * time.Hour

// Attributes of a python_dynamodb_lock record.
const (
	pythonOwner   = "owner_name"
	pythonLease   = "lease_duration"
	pythonVersion = "record_version_number"
)

func newPython(l layout.PythonDynamoDBLock) (protocol.Protocol, error) {
	p := versioned{
		schema: schema{
			Schema: protocol.Schema{
				Partition: cmp.Or(l.PartitionKey, "lock_key"),
				Sort:      cmp.Or(l.SortKey, "sort_key"),
				TTL:       cmp.Or(l.TTL, "expiry_time"),
			},
			sortValue: cmp.Or(l.SortValue, "-"),
		},
		owner: pythonOwner, lease: pythonLease, version: pythonVersion,
		own:         []string{pythonOwner, pythonLease, pythonVersion},
		encodeLease: func(d time.Duration) types.AttributeValue { return number(ceil(d, time.Second)) },
		decodeLease: (*decoder).seconds,
		collect:     pythonCollect,
	}
	return lock{p}, p.checkNames(l.Name(), p.own)
}
