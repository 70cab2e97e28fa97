package records

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// everyName lists the attribute names that any of the layouts writes. It does not contain
// the names that users choose: a layout's schema contains these.
var everyName = slices.Concat(reserved, []string{
	attrExpiresAt, pythonOwner, pythonLease, pythonVersion, dlmCode, dlmExpires, mutexHolder, mutexExpires,
})

// DeleteExactly returns the write that deletes an item. It has two conditions: the attributes of
// the item are unchanged, and the item has no other attribute of any layout. Such an attribute may
// come from a grant, or make a damaged item a lock. The item must not be a held lock: for a held
// lock, use Protocol.Delete.
func DeleteExactly(p protocol.Protocol, item protocol.Item) *protocol.Write {
	schema := p.Schema()
	key := protocol.Item{}
	for _, name := range []string{schema.Partition, schema.Sort} {
		if name != "" {
			key[name] = item[name]
		}
	}
	w := protocol.NewDelete(key)
	conditions := []string{"attribute_exists(" + w.Name(schema.Partition) + ")"}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if key[name] == nil {
			conditions = append(conditions, fmt.Sprintf("%s = %s", w.Name(name), w.Value(item[name])))
		}
	}
	for _, name := range append(slices.Clone(everyName), schema.TTL) {
		if name != "" && item[name] == nil {
			conditions = append(conditions, "attribute_not_exists("+w.Name(name)+")")
		}
	}
	w.Where(strings.Join(conditions, " AND "))
	return w
}

// LockBut is called if the given attribute of an item cannot be decoded: a user or a later version
// of leasehold may have added it. LockBut decodes a copy of the item without this attribute, and
// without any other attribute of leasehold that cannot be decoded. If the copy is a lock, LockBut
// returns its record, held or free, and true. The caller must not delete such an item: a client may
// hold the lock, and the item may contain the user's data.
//
// The caller advises the user to rename the attribute. In a session row, this would hide the
// attribute from the row's clients. So LockBut returns false for session rows, even if p is the
// protocol of another layout for the same table.
func LockBut(p protocol.Protocol, item protocol.Item, attribute string) (protocol.Record, bool) {
	switch key := p.Schema().KeyOf(item); p.(type) {
	case native, peers:
		if strings.HasPrefix(key.Partition, protocol.SessionPrefix) {
			return protocol.Record{}, false
		}
	}
	without := maps.Clone(item)
	for {
		delete(without, attribute)
		r, err := p.Decode(without)
		var next *protocol.DecodeError
		if !errors.As(err, &next) || without[next.Attribute] == nil || !slices.Contains(ours, next.Attribute) {
			return r, err == nil
		}
		attribute = next.Attribute
	}
}

// peers is the protocol of layouts AWSLabs and Dynamolock. A table may also contain records
// that were written in another layout, and that the library of this layout cannot read.
type peers struct {
	lock
	record versioned
	reads  func(lease string) bool // reports whether the layout's library can read a lease in this form
}

// Foreign describes the attribute that prevents the layout's library from using the record: a lease
// that it cannot read, or an attribute expiresAt. It returns "" if there is none. Leasehold's next
// grant replaces or removes the attribute.
func (p peers) Foreign(item protocol.Item) string {
	lease, ok := item[p.record.lease].(*types.AttributeValueMemberS)
	switch {
	case ok && !p.reads(lease.Value):
		return p.record.lease + " is " + lease.Value
	case len(p.record.removed) > 0 && item[attrExpiresAt] != nil:
		return attrExpiresAt + " is present"
	}
	return ""
}

// isMillis reports whether the awslabs Java client can read a lease: it must be an integer.
func isMillis(lease string) bool {
	_, err := strconv.ParseInt(lease, 10, 64)
	return err == nil
}

// isDuration reports whether dynamolock can read a lease: it must be a Go duration.
func isDuration(lease string) bool {
	_, err := time.ParseDuration(lease)
	return err == nil
}
