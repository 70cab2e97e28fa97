package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// everyName lists the attribute names that the layouts write. Names that users choose are
// in a layout's schema.
var everyName = slices.Concat(reserved, []string{
	attrExpiresAt, pythonOwner, pythonLease, pythonVersion, dlmCode, dlmExpires, mutexHolder, mutexExpires,
})

// DeleteExactly deletes an item if it is still as it was read: every attribute has the same
// value, and no attribute of a layout was added. An added attribute may have turned a
// damaged item into a lock, or may come from a grant of a free item. DeleteExactly is for
// items that are free, or that are not locks. No other item can be deleted safely without
// knowing its holder.
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
