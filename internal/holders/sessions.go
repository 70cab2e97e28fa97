package holders

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// sessionIn decodes the row of the session with the given id. The map "items" contains the row if
// it exists.
func (r *Reader) sessionIn(items map[protocol.Key]protocol.Item, id string) (protocol.Record, error) {
	key := r.sharing.SessionKey(id)
	row, err := liveness.SessionRow(r.sharing, items[key], protocol.DefaultLease)
	if err != nil {
		return row, r.AsRecordError(key, items[key], err)
	}
	return row, nil
}

// session reads and decodes the row of the session with the given id.
func (r *Reader) session(ctx context.Context, id string) (protocol.Record, error) {
	items, err := r.ByKey(ctx, []protocol.Key{r.sharing.SessionKey(id)})
	if err != nil {
		return protocol.Record{}, err
	}
	return r.sessionIn(items, id)
}

// UnderSessions gives each record that is held under a session the lease of that session, which
// decides when the holder is dead. It reads each session's row once. If the row does not exist or
// cannot be decoded, the record's lease stays.
func (r *Reader) UnderSessions(ctx context.Context, shown []leasehold.Record) error {
	if r.sharing == nil {
		return nil
	}
	var keys []protocol.Key
	asked := map[protocol.Key]bool{}
	for _, l := range shown {
		if key := r.sharing.SessionKey(l.Session); l.Session != "" && !l.Released && !asked[key] {
			asked[key], keys = true, append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := r.ByKey(ctx, keys)
	if err != nil {
		return err
	}
	for i, l := range shown {
		if l.Session == "" || l.Released {
			continue
		}
		if row, err := r.sessionIn(rows, l.Session); err == nil && !protocol.IsNoRow(row.Version) {
			shown[i].Lease = row.Lease
		}
	}
	return nil
}

// AsRecordError converts a *protocol.DecodeError into a *leasehold.RecordError, which also contains
// the key, the table and the item. It returns any other error unchanged.
func (r *Reader) AsRecordError(key protocol.Key, item protocol.Item, err error) error {
	if bad := (*protocol.DecodeError)(nil); errors.As(err, &bad) {
		return &leasehold.RecordError{Key: key, Table: r.table, Attribute: bad.Attribute, Problem: bad.Problem, Item: item}
	}
	return err
}
