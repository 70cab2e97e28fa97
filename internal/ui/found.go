package ui

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
	KindReadWrite Kind = "rw"
	KindSemaphore Kind = "semaphore" // the row that says how many permits there are
	KindSession   Kind = "session"   // the row that is renewed for all locks of a client
	KindDamaged   Kind = "damaged"   // not a lock, and nothing else that is known
)

// Found is what one item is.
type Found struct {
	Key     protocol.Key
	Kind    Kind
	Holders []protocol.Record // none: the key is free
	Free    protocol.Record   // the record that is kept of a free key
	Intent  *protocol.Record  // the writer that waits for a read/write lock
	Permits protocol.Permits  // of a semaphore
	Problem string            // why the item is damaged
}

// read says what an item is. Now is for read/write locks alone: a writer that lets
// readers go first does so until a time.
func read(proto protocol.Protocol, item protocol.Item, now time.Time) Found {
	key := proto.Schema().KeyOf(item)
	if sharing, ok := proto.(protocol.Sharing); ok && sharing.IsSessionKey(key) {
		return foundIn(KindSession, key, sharing.Session(), item)
	}
	if rows := protocol.PermitRowsOf(proto); rows != nil {
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
	if by, err := rw.ReadWrite(protocol.ModeRead, true).Blockers(item, now); err == nil {
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
	all, err := protocol.Records(proto, item)
	if err != nil {
		return damaged(key, err)
	}
	f := Found{Key: key, Kind: kind}
	for _, r := range all {
		if r.Released {
			f.Free = r
		} else {
			f.Holders = append(f.Holders, r)
		}
	}
	return f
}

func damaged(key protocol.Key, err error) Found {
	f := Found{Key: key, Kind: KindDamaged, Problem: err.Error()}
	if d := (*protocol.DecodeError)(nil); errors.As(err, &d) {
		f.Problem = "attribute " + d.Attribute + " " + d.Problem
	}
	return f
}
