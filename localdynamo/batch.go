package localdynamo

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"
)

const (
	maxBatchGet   = 100
	maxBatchWrite = 25
	maxBatchRead  = 16 << 20 // maximum number of bytes that one BatchGetItem returns
)

// batchGetItem implements BatchGetItem. All its reads see the same state of the Store.
func (e *Engine) batchGetItem(ctx context.Context, req *request) ([]byte, error) {
	if err := checkBatchGet(req.tables); err != nil {
		return nil, err
	}
	var reads [][]*read
	for i := range req.tables {
		one, err := e.newReads(&req.tables[i])
		if err != nil {
			return nil, err
		}
		reads = append(reads, one)
	}
	b := batchRead{found: make([][]item, len(reads)), left: make([][]item, len(reads))}
	if err := e.view(ctx, func(tx Tx) error { return b.read(e, tx, req, reads) }); err != nil {
		return nil, err
	}
	return b.reply(req), nil
}

// checkBatchGet refuses a batch that has no keys or too many keys.
func checkBatchGet(tables []tableRequest) error {
	total := 0
	for _, part := range tables {
		n := len(part.request.keys)
		bound := ""
		switch {
		case n == 0:
			bound = "greater than or equal to 1"
		case n > maxBatchGet:
			bound = "less than or equal to " + strconv.Itoa(maxBatchGet)
		}
		if bound != "" {
			return invalidf("1 validation error detected: Value '[%d keys]' at 'requestItems.%s.member.keys' failed to satisfy constraint: Member must have length %s", n, part.table, bound)
		}
		total += n
	}
	switch {
	case total == 0:
		return invalid("1 validation error detected: Value '{}' at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case total > maxBatchGet:
		return invalid("Too many items requested for the BatchGetItem call")
	}
	return nil
}

// newReads returns one read for each key that a batch contains for one table.
func (e *Engine) newReads(part *tableRequest) ([]*read, error) {
	part.request.table = part.table
	reads := make([]*read, len(part.request.keys))
	part.request.key = some(part.request.keys[0])
	first, err := e.newRead(&part.request)
	if err != nil {
		return nil, err
	}
	for i, key := range part.request.keys {
		reads[i] = &read{part.table, key, first.projection}
	}
	return reads, nil
}

// batchRead is the result of a BatchGetItem. For each table it contains the items that were
// found, and the keys that were not read because the reply would have become too long.
type batchRead struct {
	found [][]item
	left  [][]item
	size  int
	used  tally
}

func (b *batchRead) read(e *Engine, tx Tx, req *request, reads [][]*read) error {
	now := time.Now()
	for i, part := range reads {
		if err := e.checkNoDuplicates(tx, part); err != nil {
			return err
		}
		for _, one := range part {
			found, size, err := e.find(tx, one, now)
			if err != nil {
				return err
			}
			if b.size += size; b.size > maxBatchRead {
				b.left[i] = append(b.left[i], one.key)
				continue
			}
			if found != nil {
				b.found[i] = append(b.found[i], found)
			}
			b.used.add(one.table, readUnits(size, req.tables[i].request.consistent), 0)
		}
	}
	return nil
}

// checkNoDuplicates returns an error if two reads are of the same item.
func (e *Engine) checkNoDuplicates(tx Tx, reads []*read) error {
	var places [][]byte
	for _, one := range reads {
		t, err := e.table(tx, one.table)
		if err != nil {
			return err
		}
		place, err := t.key(one.key)
		if err != nil {
			return err
		}
		places = append(places, place)
	}
	if hasDuplicates(places) {
		return errSameKey
	}
	return nil
}

var errSameKey = invalid("Provided list of item keys contains duplicates")

func hasDuplicates(places [][]byte) bool {
	slices.SortFunc(places, bytes.Compare)
	return len(slices.CompactFunc(places, bytes.Equal)) < len(places)
}

func (b *batchRead) reply(req *request) []byte {
	responses, unprocessed := newReply(), newReply()
	for i, part := range req.tables {
		responses.items(part.table, b.found[i])
		if len(b.left[i]) > 0 {
			unprocessed.body = append(unprocessed.member(part.table).body, part.request.remaining(b.left[i])...)
		}
	}
	r := newReply()
	r.body = append(r.member("Responses").body, responses.end()...)
	r.body = append(r.member("UnprocessedKeys").body, unprocessed.end()...)
	r.consumedList(req.capacity, b.used, false)
	return r.end()
}

// remaining returns the part of a BatchGetItem for one table, with the given keys instead of all keys.
// The client can send it as the next request.
func (req *request) remaining(keys []item) []byte {
	r := newReply()
	r.items("Keys", keys)
	r.body = strconv.AppendBool(r.member("ConsistentRead").body, req.consistent)
	if req.projection.given {
		r.text("ProjectionExpression", req.projection.value)
	}
	if req.names.given {
		names := newReply()
		for _, n := range req.names.value {
			names.text(n.placeholder, n.name)
		}
		r.body = append(r.member("ExpressionAttributeNames").body, names.end()...)
	}
	return r.end()
}

// batchWriteItem implements BatchWriteItem. It executes the whole batch atomically. In
// DynamoDB, each write of a batch is atomic, but the batch is not.
func (e *Engine) batchWriteItem(ctx context.Context, req *request) ([]byte, error) {
	writes, err := e.newWrites(req)
	if err != nil {
		return nil, err
	}
	var used tally
	err = e.change(ctx, func(tx Tx) error {
		var places [][]byte
		for _, w := range writes {
			done, err := e.apply(tx, w, time.Now())
			if err != nil {
				return err
			}
			places = append(places, done.key)
			used.add(w.table, 0, writeUnits(done.before, done.after))
		}
		if hasDuplicates(places) {
			return errSameKey
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := newReply()
	r.body = append(r.member("UnprocessedItems").body, '{', '}')
	r.consumedList(req.capacity, used, false)
	return r.end(), nil
}

// newWrites returns the writes that a batch contains, in the order of the request.
func (e *Engine) newWrites(req *request) ([]*write, error) {
	if err := checkBatchWrite(req.tables); err != nil {
		return nil, err
	}
	var writes []*write
	for i := range req.tables {
		part := &req.tables[i]
		for j := range part.request.actions {
			part.request.actions[j].request.table = part.table
			w, err := e.newBatchWrite(&part.request.actions[j])
			if err != nil {
				return nil, err
			}
			writes = append(writes, w)
		}
	}
	return writes, nil
}

// checkBatchWrite refuses a batch that has no writes or too many writes.
func checkBatchWrite(tables []tableRequest) error {
	total := 0
	for _, part := range tables {
		n := len(part.request.actions)
		if n == 0 || n > maxBatchWrite {
			return invalidf("1 validation error detected: Value '{%s=[%d writes]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to %d, Member must have length greater than or equal to 1]",
				part.table, n, maxBatchWrite)
		}
		total += n
	}
	switch {
	case total == 0:
		return invalid("1 validation error detected: Value '{}' at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case total > maxBatchWrite:
		return invalid("Too many items requested for the BatchWriteItem call")
	}
	return nil
}

func (e *Engine) newBatchWrite(a *action) (*write, error) {
	if len(a.kinds) != 1 {
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	switch kind := a.kinds[0]; kind {
	case "PutRequest":
		return e.newPut(&a.request)
	case "DeleteRequest":
		return e.newDelete(&a.request)
	default:
		return nil, malformed("a write request is a PutRequest or a DeleteRequest, not a " + kind)
	}
}
