package layouttest

import (
	"cmp"
	"maps"
	"time"

	"github.com/leasehold-go/leasehold/layout"
)

// Subject is a configured layout, with the facts about its table that the tests need.
type Subject struct {
	Name   string
	Layout layout.Layout

	partition, sort string        // names of the key attributes; sort is "" if the table has no sort key
	sortValue       string        // sort key of calls without WithSortKey
	ttl             string        // TTL attribute; "" if the layout has none
	skew            time.Duration // MaxSkew of the layout; zero if its records have no expiry time
	peer            peer          // client of the lock library with which the layout is compatible
}

// Subjects returns every layout with its defaults, and some variants of each layout.
func Subjects() []Subject {
	return append(Brief(),
		Subject{
			Name:      "native with other names and a sort key",
			Layout:    layout.Native{PartitionKey: "name", SortKey: "shard", SortValue: "0", TTL: "collect"},
			partition: "name", sort: "shard", sortValue: "0", ttl: "collect", peer: java,
		},
		Subject{
			Name:      "native without TTL",
			Layout:    layout.Native{TTL: "-"},
			partition: "key", peer: java,
		},
		Subject{
			Name:      "awslabs with a sort key",
			Layout:    layout.AWSLabs{PartitionKey: "id", SortKey: "range", SortValue: "-"},
			partition: "id", sort: "range", sortValue: "-", peer: java,
		},
		Subject{
			Name: "dynamolock with a sort key",
			// In most tables of this layout, a grant removes the attribute expiresAt. In this
			// table it must not, because expiresAt is the sort key.
			Layout:    layout.Dynamolock{SortKey: "expiresAt", SortValue: "all"},
			partition: "key", sort: "expiresAt", sortValue: "all", peer: dynamolock,
		},
		Subject{
			Name:      "python-dynamodb-lock with other names",
			Layout:    layout.PythonDynamoDBLock{PartitionKey: "k", SortKey: "s", SortValue: "x", TTL: "t"},
			partition: "k", sort: "s", sortValue: "x", ttl: "t", peer: python("t"),
		},
		Subject{
			Name:      "dynamo-dlm without slots",
			Layout:    layout.DynamoDLM{NoSlots: true},
			partition: "resource_id", skew: 2 * time.Second, peer: dlm,
		},
		Subject{
			Name:      "dyndb-mutex with the default skew",
			Layout:    layout.DyndbMutex{},
			partition: "lockname", ttl: "ttl", skew: 2 * time.Second, peer: mutex,
		},
	)
}

// Brief returns the six layouts. If a layout has a MaxSkew, Brief sets it to a small value, so that
// tests can use short leases.
func Brief() []Subject {
	const skew = 100 * time.Millisecond
	return []Subject{
		{Name: "native", Layout: layout.Native{}, partition: "key", ttl: "expiresAt", peer: java},
		{Name: "awslabs", Layout: layout.AWSLabs{}, partition: "key", peer: java},
		{Name: "dynamolock", Layout: layout.Dynamolock{}, partition: "key", peer: dynamolock},
		{
			Name: "python-dynamodb-lock", Layout: layout.PythonDynamoDBLock{},
			partition: "lock_key", sort: "sort_key", sortValue: "-", ttl: "expiry_time", peer: python("expiry_time"),
		},
		{
			Name: "dynamo-dlm", Layout: layout.DynamoDLM{MaxSkew: skew},
			partition: "resource_id", sort: "concurrency_id", sortValue: "0", skew: skew, peer: dlm,
		},
		{
			Name: "dyndb-mutex", Layout: layout.DyndbMutex{MaxSkew: skew},
			partition: "lockname", ttl: "ttl", skew: skew, peer: mutex,
		},
	}
}

func (s Subject) caps() layout.Capabilities { return s.Layout.Capabilities() }

// short returns a short lease that is longer than the layout's MaxSkew. A holder stops trusting its
// lock more than MaxSkew before the end of the lease. With a lease of MaxSkew or less, it could
// never trust its lock.
func (s Subject) short() time.Duration {
	if s.skew <= 100*time.Millisecond {
		return time.Second
	}
	return s.skew + 2*time.Second
}

// keyItem returns the key attributes of the given key's record, with the default sort key.
func (s Subject) keyItem(key string) Item { return s.sortedKeyItem(key, s.sortValue) }

func (s Subject) sortedKeyItem(key, sort string) Item {
	item := Item{s.partition: text(key)}
	switch {
	case s.hasSlots():
		item[s.sort] = decimal(sort)
	case s.sort != "":
		item[s.sort] = text(sort)
	}
	return item
}

// record returns an item with the given key and attributes.
func (s Subject) record(key string, attributes Item) Item {
	item := s.keyItem(key)
	maps.Copy(item, attributes)
	return item
}

// granted returns the item that a peer writes for a grant of the given key. A peer is a client of
// the layout's lock library.
func (s Subject) granted(key, holder string, lease time.Duration) Item {
	return s.record(key, s.peer.grant(holder, lease, time.Now()))
}

// isByClock reports whether records of the layout contain an expiry time. In such a layout, a
// holder is dead when another client's wall clock shows the expiry time plus MaxSkew.
func (s Subject) isByClock() bool { return s.caps().Expiry == layout.WallClock }

// hasSlots reports whether the layout is dynamo-dlm with slots. Then the sort key is the number
// of a slot.
func (s Subject) hasSlots() bool {
	dlm, ok := s.Layout.(layout.DynamoDLM)
	return ok && !dlm.NoSlots
}

// step returns the unit in which the layout stores expiry times. The layout rounds an expiry time
// up. So other clients may consider a holder dead up to one step after the end of its lease.
func (s Subject) step() time.Duration { return cmp.Or(s.caps().LeaseStep, time.Millisecond) }
