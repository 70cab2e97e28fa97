package holders

import (
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Kind is what an item of a lock table is.
type Kind string

// Values of Kind.
const (
	KindLock      Kind = "lock"
	KindReadWrite Kind = protocol.KindReadWrite
	KindSemaphore Kind = protocol.KindSemaphore // the row that says how many permits there are
	KindSession   Kind = "session"              // the row that is renewed for all locks of a client
	KindDamaged   Kind = "damaged"              // not a lock, and nothing else that is known
)

// Found is what one item is.
type Found struct {
	Key     protocol.Key
	Kind    Kind
	Holders []protocol.Record     // none: the key is free
	Free    protocol.Record       // the record that is kept of a free key
	Intent  *protocol.Record      // the writer that waits for a read/write lock
	Permits protocol.Permits      // of a semaphore
	Damage  *protocol.DecodeError // why the item does not read
}

// Read says what an item is.
func Read(proto protocol.Protocol, item protocol.Item) Found {
	key := proto.Schema().KeyOf(item)
	if sharing, ok := proto.(protocol.Sharing); ok && sharing.IsSessionKey(key) {
		return foundIn(KindSession, key, sharing.Session(), item)
	}
	if rows := protocol.PermitRowsOf(proto); rows != nil && rows.Key(key.Partition) == key {
		if p, err := rows.Decode(item); err == nil {
			return Found{Key: key, Kind: KindSemaphore, Permits: p}
		}
	}
	rw, ok := proto.(protocol.ReadWriting)
	if !ok || !protocol.IsReadWrite(item) {
		return foundIn(KindLock, key, proto, item)
	}
	f := foundIn(KindReadWrite, key, proto, item)
	if f.Kind == KindDamaged {
		return f
	}
	// To a reader that does not wait, no time matters.
	if by, err := rw.ReadWrite(protocol.ModeRead, true).Blockers(item, time.Time{}); err == nil {
		for _, b := range by.By {
			if b.Mode == protocol.ModeIntent {
				f.Intent = &b
			}
		}
	}
	return f
}

// foundIn is an item of a kind that proto decodes.
func foundIn(kind Kind, key protocol.Key, proto protocol.Protocol, item protocol.Item) Found {
	f := Found{Key: key, Kind: kind}
	all, err := protocol.Records(proto, item)
	if err != nil {
		f.Kind = KindDamaged
		if !errors.As(err, &f.Damage) {
			f.Damage = &protocol.DecodeError{Attribute: "item", Problem: err.Error()}
		}
		return f
	}
	for _, r := range all {
		if r.Released {
			f.Free = r
		} else {
			f.Holders = append(f.Holders, r)
		}
	}
	return f
}
