package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// everyName lists the attribute names that any of the layouts writes. It does not contain
// the names that users choose: a layout's schema contains these.
var everyName = slices.Concat(reserved, []string{
	attrExpiresAt, pythonOwner, pythonLease, pythonVersion, dlmCode, dlmExpires, mutexHolder, mutexExpires,
})

// DeleteExactly returns the write that deletes item. Its condition is that every attribute
// still has the same value, and that the item has no new attribute of a layout. A new
// attribute may have turned a damaged item into a lock, or may come from a grant.
// DeleteExactly is only for items that are free, or that are not locks. The item of a held
// lock can be deleted safely only with a condition on its holder.
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
