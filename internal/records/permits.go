package records

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes of a semaphore's row, which stores its number of permits.
const (
	attrPermits = "permits"
	attrMost    = "most" // the highest number of permits so far
)

// permitRows encodes the rows of semaphores. Like a record, a row gets a new
// version with every write.
type permitRows struct{ versioned }

// PermitKey returns the key of a permit's lock: the semaphore's key, a slash and
// the number. In a table with a sort key, it has the semaphore's sort key.
func (p native) PermitKey(key string, permit int) protocol.Key {
	k := p.record.semaphoreKey(key)
	k.Partition += "/" + strconv.Itoa(permit)
	return k
}

func (p native) PermitRows() protocol.PermitRows { return permitRows{p.record} }

// semaphoreKey returns the key of a semaphore's row. Its sort key is the layout's
// SortValue, or else "-".
func (p versioned) semaphoreKey(key string) protocol.Key {
	k := p.Complete(protocol.Key{Partition: key})
	if p.Sort != "" {
		k.Sort = cmp.Or(k.Sort, "-")
	}
	return k
}

func (p permitRows) Key(key string) protocol.Key { return p.semaphoreKey(key) }

func (p permitRows) Create(k protocol.Key, owner string, permits protocol.Permits) *protocol.Write {
	w := p.write(k, owner, permits)
	w.Where(fmt.Sprintf("attribute_not_exists(%s)", w.Name(p.Partition)))
	return w
}

func (p permitRows) Replace(k protocol.Key, owner, version string, permits protocol.Permits) *protocol.Write {
	w := p.write(k, owner, permits)
	w.Where(fmt.Sprintf("%s = %s AND %s", w.Name(attrKind), w.Text(protocol.KindSemaphore), w.In(p.version, []string{version})))
	return w
}

// write writes a row. A peer can list it like a lock, but never takes it over, as
// its lease is so long.
func (p permitRows) write(k protocol.Key, owner string, permits protocol.Permits) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(k))
	w.Set(attrKind, text(protocol.KindSemaphore))
	w.Set(p.owner, text(owner))
	w.Set(p.lease, p.encodeLease(longestLease))
	w.Set(p.version, text(permits.Version))
	w.Set(attrGrant, text(permits.ID))
	w.Set(attrPermits, number(int64(permits.N)))
	w.Set(attrMost, number(int64(permits.Most)))
	return w
}

func (p permitRows) Decode(item protocol.Item) (protocol.Permits, error) {
	d := decoder{item: item}
	d.kind(protocol.KindSemaphore)
	permits := protocol.Permits{
		N: d.permits(attrPermits, 1), ID: d.text(attrGrant), Version: d.text(p.version),
	}
	permits.Most = d.permits(attrMost, permits.N)
	if d.err != nil {
		return protocol.Permits{}, d.err
	}
	return permits, nil
}

// permits reads a number of permits.
func (d *decoder) permits(name string, least int) int {
	d.required(name)
	n, ok := d.integer(name)
	if ok && (n < int64(least) || n > protocol.MostPermits) {
		d.fail(name, fmt.Sprintf("is %d: it must be from %d to %d", n, least, protocol.MostPermits))
	}
	return int(n)
}

// slotted is the protocol of DynamoDLM in tables with slots. A permit is a slot.
// No record stores the number of permits.
type slotted struct{ lock }

func (p slotted) PermitKey(key string, permit int) protocol.Key {
	return protocol.Key{Partition: key, Sort: strconv.Itoa(permit)}
}

func (slotted) PermitRows() protocol.PermitRows { return nil }
