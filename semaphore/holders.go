package semaphore

import (
	"context"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/bridge"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Holders returns the records of the permits that are held, in order of the permits.
// After a Resize it includes permits above n. It reads each record once, which cannot
// tell whether a holder lives: a dead one is included until somebody else is granted
// its permit. Above n nobody is: Client.Break frees such a permit. Where records say
// when they expire, those that have expired are left out. For a record that cannot be
// read there is a *leasehold.RecordError, beside the other records.
func (s *Semaphore) Holders(ctx context.Context) ([]leasehold.Record, error) {
	n := s.number().n
	if s.row != nil {
		asking, cancel := withinTry(ctx)
		defer cancel()
		p, err := s.row.read(asking, "holders")
		if err != nil {
			return nil, s.notOurs(err)
		}
		if p.Version != "" {
			n = p.Most
		}
	}
	items, err := s.readAll(ctx, s.all[:n])
	if err != nil {
		return nil, err
	}
	var held []leasehold.Record
	var errs []error
	for _, key := range s.all[:n] {
		item := items[protocol.Key(key)]
		if item == nil {
			continue
		}
		r, err := s.c.Observer.Decode(protocol.Key(key), item)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !r.Released && !s.isExpired(r):
			held = append(held, bridge.Record(r).(leasehold.Record))
		}
	}
	held, err = s.withoutDeadSessions(ctx, held)
	return held, errors.Join(append(errs, err)...)
}

// readAll reads the records of keys.
func (s *Semaphore) readAll(ctx context.Context, keys []leasehold.Key) (items map[protocol.Key]protocol.Item, err error) {
	ask := make([]protocol.Key, len(keys))
	for i, key := range keys {
		ask[i] = protocol.Key(key)
	}
	err = s.in.RetryRead(ctx, "holders", keys[0], func(ctx context.Context) (err error) {
		items, _, err = s.c.Requests.ReadAll(ctx, ask)
		return err
	})
	return items, err
}

// isExpired reports whether the record itself says that its holder is dead.
func (s *Semaphore) isExpired(r protocol.Record) bool {
	wall, now := s.c.Wall(), s.c.Now()
	return s.c.Observer.DeadAt(r, observed.Version{Since: now}, now, wall) <= now.Mono
}

// withoutDeadSessions leaves out the records that a session has freed.
func (s *Semaphore) withoutDeadSessions(ctx context.Context, held []leasehold.Record) ([]leasehold.Record, error) {
	proto, ok := s.c.Proto.(protocol.Sharing)
	if !ok {
		return held, nil
	}
	var rows []leasehold.Key
	for _, r := range held {
		if row := leasehold.Key(proto.SessionKey(r.Session)); r.Session != "" && !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return held, nil
	}
	items, err := s.readAll(ctx, rows)
	if err != nil {
		return held, err
	}
	return slices.DeleteFunc(held, func(r leasehold.Record) bool {
		if r.Session == "" {
			return false
		}
		row, err := proto.Session().Decode(items[proto.SessionKey(r.Session)])
		return err == nil && row.Released
	}), nil
}
