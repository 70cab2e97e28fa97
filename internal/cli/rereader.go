package cli

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

const (
	batchSize       = 100 // the most that one BatchGetItem reads
	concurrentReads = 32  // of single items
	readLimit       = 10 * time.Second
	// unreadPause is how long keys wait that a BatchGetItem has left out, because
	// its reply was full or the table is throttled.
	unreadPause = 100 * time.Millisecond
)

// rereader reads the items of a listing again, consistently, in the way that uses
// fewer read units. By its key an item uses one unit at least, however small it is.
// A listing uses one for every 4 KB, which is a dozen records; but it reads the whole
// table, or partition, for the sake of the few that are wanted.
type rereader struct {
	db    *dynamodb.Client
	table string
	proto protocol.Protocol
	paid  bool // somebody pays for read units

	listing scope
	// What one listing uses if it reads consistently. No units: it is not known, and
	// items are read by key.
	requests int
	units    float64

	oneByOne bool // BatchGetItem is denied, as by a policy that allows reading only
}

// scope is what a listing reads: one partition, or the keys with a prefix.
type scope struct{ partition, prefix string }

// all reports whether a listing shows every item of the table.
func (s scope) all() bool { return s == scope{} }

// mayList lets the items be read by listing what was listed just now. reads has counted
// what that used.
func (r *rereader) mayList(listed scope, reads *meter) {
	r.listing = listed
	r.requests, r.units = reads.total()
	r.units *= 2 // a consistent reading
}

// lists reports whether n items are read by listing, not by key.
func (r *rereader) lists(n int) bool { return r.units > 0 && r.units < float64(n) }

// cost returns what reading keys and sessions uses: requests, and read units at least.
func (r *rereader) cost(keys, sessions int) (requests int, units float64) {
	switch n := keys + sessions; {
	case !r.lists(n):
		return r.requestsFor(n), float64(n)
	case r.listing.all(): // that shows the sessions too
		return r.requests, r.units
	}
	return r.requests + r.requestsFor(sessions), r.units + float64(sessions)
}

// requestsFor returns how many requests read n items by key.
func (r *rereader) requestsFor(n int) int {
	if n < 3 || r.oneByOne {
		return n
	}
	return (n + batchSize - 1) / batchSize
}

// read returns the items of keys. One that does not exist is not in the map.
func (r *rereader) read(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, error) {
	if !r.lists(len(keys)) {
		return r.byKey(ctx, keys)
	}
	found, err := r.list(ctx, keys)
	if err != nil || r.listing.all() {
		return found, err
	}
	hidden := slices.DeleteFunc(slices.Clone(keys), func(k protocol.Key) bool { return !r.hides(k) })
	sessions, err := r.byKey(ctx, hidden)
	for k, item := range sessions {
		found[k] = item
	}
	return found, err
}

// hides reports whether the listing does not show k: it is the key of a session.
func (r *rereader) hides(k protocol.Key) bool {
	sharing, ok := r.proto.(protocol.Sharing)
	return ok && sharing.IsSessionKey(k)
}

// list reads the listing, and keeps the items of keys.
func (r *rereader) list(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, error) {
	wanted := make(map[protocol.Key]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	found := make(map[protocol.Key]protocol.Item, len(keys))
	var start protocol.Item
	for {
		items, next, err := r.page(ctx, start)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if k := r.proto.Schema().KeyOf(item); wanted[k] {
				found[k] = item
			}
		}
		if start = next; len(start) == 0 {
			return found, nil
		}
	}
}

func (r *rereader) page(ctx context.Context, start protocol.Item) (items []protocol.Item, next protocol.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	names := map[string]string{"#k": r.proto.Schema().Partition}
	value := func(s string) protocol.Item { return protocol.Item{":k": &types.AttributeValueMemberS{Value: s}} }
	if r.listing.partition != "" {
		out, err := r.db.Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String(r.table), ExclusiveStartKey: start, ConsistentRead: aws.Bool(true),
			KeyConditionExpression:   aws.String("#k = :k"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: value(r.listing.partition),
		})
		if err != nil {
			return nil, nil, err
		}
		return out.Items, out.LastEvaluatedKey, nil
	}
	in := &dynamodb.ScanInput{TableName: aws.String(r.table), ExclusiveStartKey: start, ConsistentRead: aws.Bool(true)}
	if r.listing.prefix != "" {
		in.FilterExpression = aws.String("begins_with(#k, :k)")
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = names, value(r.listing.prefix)
	}
	out, err := r.db.Scan(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	return out.Items, out.LastEvaluatedKey, nil
}

// byKey reads one or two items by GetItem, more by BatchGetItem.
func (r *rereader) byKey(ctx context.Context, keys []protocol.Key) (map[protocol.Key]protocol.Item, error) {
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
		if !isDenied(err) {
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

// batches reads items by BatchGetItem.
func (r *rereader) batches(ctx context.Context, keys []protocol.Item) (map[protocol.Key]protocol.Item, error) {
	found := make(map[protocol.Key]protocol.Item, len(keys))
	for batch := range slices.Chunk(keys, batchSize) {
		for len(batch) > 0 {
			items, unread, err := r.batch(ctx, batch)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				found[r.proto.Schema().KeyOf(item)] = item
			}
			if batch = unread; len(batch) > 0 && !sleep(ctx, unreadPause) {
				return nil, context.Cause(ctx)
			}
		}
	}
	return found, nil
}

func (r *rereader) one(ctx context.Context, key protocol.Item) (protocol.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	out, err := r.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(r.table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}

// batch sends one BatchGetItem. unread are the keys that it has left out.
func (r *rereader) batch(ctx context.Context, keys []protocol.Item) (items, unread []protocol.Item, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	out, err := r.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		r.table: {Keys: keys, ConsistentRead: aws.Bool(true)},
	}})
	if err != nil {
		return nil, nil, err
	}
	for _, of := range out.Responses { // of one table, by its name where it was asked for by its ARN
		items = append(items, of...)
	}
	for _, of := range out.UnprocessedKeys {
		unread = append(unread, of.Keys...)
	}
	return items, unread, nil
}
