package holders

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

const (
	concurrentReads = 32 // maximum number of GetItem requests in flight
	// unreadPause is the pause before the next BatchGetItem if a reply left out keys: the reply was
	// full or the table is throttled.
	unreadPause = 100 * time.Millisecond
)

// Reader reads items with strong consistency: by key, or by a listing if that uses fewer read
// units. A read by key uses at least one unit for each item. A listing uses one unit for each 4 KB,
// about a dozen records, but it reads the whole table or partition.
type Reader struct {
	db      leasehold.DB
	table   string
	proto   protocol.Protocol
	sharing protocol.Native // protocol of a layout with sessions; nil if the layout has none

	listing Scope
	// requests and units are the cost of one listing with consistent reads. If units is zero,
	// the cost is unknown, and items are read by key.
	requests int
	units    float64

	oneByOne bool // whether BatchGetItem is denied, for example by a policy that allows only the actions of table.Read
}

// NewReader returns a Reader of the items of a table. proto decodes the items.
func NewReader(db leasehold.DB, table string, proto protocol.Protocol) Reader {
	sharing, _ := proto.(protocol.Native)
	return Reader{db: db, table: table, proto: proto, sharing: sharing}
}

// Scope selects the items that a listing contains.
type Scope = attempts.Listing

// listsAll reports whether the listing contains every item of the table.
func (r *Reader) listsAll() bool { return r.listing == Scope{} }

// MayList allows the Reader to read the listing with the scope "listed" instead of single items.
// The other parameters are the cost of reading this listing once with eventual consistency: the
// number of requests, and the read units used.
func (r *Reader) MayList(listed Scope, requests int, units float64) {
	r.listing = listed
	r.requests, r.units = requests, 2*units // a consistent listing uses twice as many units
}

// lists reports whether reading the listing uses fewer units than reading n items by key.
func (r *Reader) lists(n int) bool { return r.units > 0 && r.units < float64(n) }

// cost returns the cost of reading the given numbers of lock records and sessions: the number
// of requests, and the least number of read units.
func (r *Reader) cost(keys, sessions int) (requests int, units float64) {
	switch n := keys + sessions; {
	case !r.lists(n):
		return r.requestsFor(n), float64(n)
	case r.listsAll(): // the listing also contains the rows of the sessions
		return r.requests, r.units
	}
	return r.requests + r.requestsFor(sessions), r.units + float64(sessions)
}

// requestsFor returns how many requests are needed to read n items by key.
func (r *Reader) requestsFor(n int) int {
	if n < 3 || r.oneByOne {
		return n
	}
	return (n + attempts.MaxBatchGet - 1) / attempts.MaxBatchGet
}

// read returns the items that have the given keys. The map has no entry for an item that does
// not exist.
func (r *Reader) read(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, error) {
	if !r.lists(len(keys)) {
		return r.ByKey(ctx, keys)
	}
	found, err := r.list(ctx, keys)
	if err != nil || r.listsAll() {
		return found, err
	}
	// A listing with a Partition or a Prefix may leave out the rows of sessions.
	hidden := slices.DeleteFunc(slices.Clone(keys), func(k protocol.Key) bool { return !protocol.IsSessionKey(r.proto, k) })
	sessions, err := r.ByKey(ctx, hidden)
	maps.Copy(found, sessions)
	return found, err
}

// list reads the whole listing, and returns the items that have one of the given keys.
func (r *Reader) list(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, error) {
	wanted := make(map[protocol.Key]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	found := make(map[protocol.Key]protocol.Item, len(keys))
	for item, err := range r.Items(ctx, r.listing) {
		if err != nil {
			return nil, err
		}
		if k := r.proto.Schema().KeyOf(item); wanted[k] {
			found[k] = item
		}
	}
	return found, nil
}

// Items yields the items of a listing, and reads them page by page. It yields an error at most
// once, as the last element.
func (r *Reader) Items(ctx context.Context, of Scope) iter.Seq2[protocol.Item, error] {
	return func(yield func(protocol.Item, error) bool) {
		var at attempts.Walk
		for {
			items, err := r.page(ctx, of, &at)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if len(at.Start) == 0 {
				return
			}
		}
	}
}

// page returns the items on the next page of a listing, and moves the position "at" past that page.
func (r *Reader) page(ctx context.Context, of Scope, at *attempts.Walk) (items []protocol.Item, err error) {
	err = attempts.Patiently(ctx, func(ctx context.Context) (err error) {
		items, err = of.Page(ctx, r.db, r.table, r.proto.Schema(), aws.Bool(true), at)
		return err
	})
	return items, err
}

// ByKey reads items by their keys. It reads one or two items by GetItem, and more items by
// BatchGetItem.
func (r *Reader) ByKey(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, error) {
	ask := make([]protocol.Item, len(keys))
	for i, k := range keys {
		key, err := r.proto.Key(k)
		if err != nil {
			return nil, err
		}
		ask[i] = key
	}
	if len(ask) > 2 && !r.oneByOne {
		found, err := r.batches(ctx, ask)
		if !decide.Denied(err) {
			return found, err
		}
		r.oneByOne = true
	}
	items, errs := make([]protocol.Item, len(ask)), make([]error, len(ask))
	places := make(chan struct{}, concurrentReads)
	var wg sync.WaitGroup
	for i, key := range ask {
		places <- struct{}{}
		wg.Go(func() {
			items[i], errs[i] = r.one(ctx, key)
			<-places
		})
	}
	wg.Wait()
	found := make(map[protocol.Key]protocol.Item, len(keys))
	for i, k := range keys {
		if items[i] != nil {
			found[k] = items[i]
		}
	}
	return found, errors.Join(errs...)
}

// batches reads items by one or more BatchGetItem requests.
func (r *Reader) batches(ctx context.Context, keys []protocol.Item) (map[protocol.Key]protocol.Item, error) {
	found := make(map[protocol.Key]protocol.Item, len(keys))
	for batch := range slices.Chunk(keys, attempts.MaxBatchGet) {
		for len(batch) > 0 {
			items, unread, err := r.batch(ctx, batch)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				found[r.proto.Schema().KeyOf(item)] = item
			}
			if batch = unread; len(batch) > 0 && !attempts.Wait(ctx, unreadPause) {
				return nil, context.Cause(ctx)
			}
		}
	}
	return found, nil
}

func (r *Reader) one(ctx context.Context, key protocol.Item) (item protocol.Item, err error) {
	err = attempts.Patiently(ctx, func(ctx context.Context) error {
		out, err := r.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(r.table), Key: key, ConsistentRead: aws.Bool(true)}, attempts.Once)
		if err == nil && len(out.Item) > 0 {
			item = out.Item
		}
		return err
	})
	return item, err
}

// batch sends one BatchGetItem. unread contains the keys whose items the reply left out.
func (r *Reader) batch(ctx context.Context, keys []protocol.Item) (items, unread []protocol.Item, err error) {
	err = attempts.Patiently(ctx, func(ctx context.Context) (err error) {
		items, unread, err = attempts.Batch(ctx, r.db, r.table, keys)
		return err
	})
	return items, unread, err
}

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
