package holders

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Listing selects the records that List returns.
type Listing struct {
	Scope
	Released bool // also returns records of free keys
	Bare     bool // omits attributes, and data that is long or not text: these may take 400 KB for each record
}

// IsDamaged reports whether err is about a single record that cannot be decoded. A listing can
// continue after it. IsDamaged returns false if the item lacks the layout's key: then the table and
// the layout have different key schemas.
func IsDamaged(err error) bool {
	var bad *leasehold.RecordError
	return errors.As(err, &bad) && bad.Key != (leasehold.Key{})
}

// List returns records sorted by key. It leaves out records that cannot be decoded, and returns
// their errors in the result "damaged".
func List(ctx context.Context, locks *leasehold.Client, l Listing) (found []leasehold.Record, damaged []error, err error) {
	for r, err := range locks.List(ctx, leasehold.ListOptions{Prefix: l.Prefix}) {
		switch {
		case IsDamaged(err):
			damaged = append(damaged, err)
		case err != nil:
			return nil, damaged, err
		case l.Released || !r.Released:
			if l.Bare {
				r.Data, r.Attributes = []byte(visible.Remark(r.Data)), nil
			}
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(x, y leasehold.Record) int { return x.Key.Compare(y.Key) })
	return found, damaged, nil
}

// Kind is the kind of an item in a lock table.
type Kind string

// Kinds of items.
const (
	KindLock    Kind = "lock"
	KindSession Kind = "session" // a row that a client renews instead of the record of each of its locks
	KindDamaged Kind = "damaged" // an item that cannot be decoded as a lock or a session
)

// Found is the result of decoding one item of a lock table.
type Found struct {
	Key    protocol.Key
	Kind   Kind
	Record protocol.Record       // zero if the item cannot be decoded
	Damage *protocol.DecodeError // why the item cannot be decoded; nil if it was decoded
}

// Held reports whether the item is a record that has a holder.
func (f Found) Held() bool { return f.Kind != KindDamaged && !f.Record.Released }

// Read decodes an item as a lock or a session, depending on its key.
func Read(proto protocol.Protocol, item protocol.Item) Found {
	key := proto.Schema().KeyOf(item)
	if protocol.IsSessionKey(proto, key) {
		return foundIn(KindSession, key, proto.(protocol.Native).Session(), item)
	}
	return foundIn(KindLock, key, proto, item)
}

// foundIn decodes an item with proto. The result has the given kind, or KindDamaged if proto
// cannot decode the item.
func foundIn(kind Kind, key protocol.Key, proto protocol.Protocol, item protocol.Item) Found {
	f := Found{Key: key, Kind: kind}
	r, err := proto.Decode(item)
	if err != nil {
		f.Kind = KindDamaged
		if !errors.As(err, &f.Damage) {
			f.Damage = &protocol.DecodeError{Attribute: "item", Problem: err.Error()}
		}
		return f
	}
	f.Record = r
	return f
}

// GrantOf returns a string that is the same for all records of one grant, and different for the
// next grant of the key. See liveness.GrantOf.
func GrantOf(r leasehold.Record) string {
	return liveness.GrantOf(protocol.Record{Grant: r.Grant, Owner: r.Owner, Version: r.Version, Lease: r.Lease})
}

// Get reads the record of a key of the lock table.
func Get(ctx context.Context, locks *leasehold.Client, key leasehold.Key) (leasehold.Record, error) {
	return locks.Get(ctx, key.Partition, leasehold.WithSortKey(key.Sort))
}
