package localdynamo

import (
	"context"
	"time"
)

// maxItemSize is the maximum size of an item, in bytes.
const maxItemSize = 400 << 10

// write describes the write of one item: a whole request, or a part of a batch or transaction.
type write struct {
	table      string
	key        option[item]
	put        option[item] // new item if the write is a put
	update     *update      // update expression; nil unless the write is an update
	delete     bool
	check      bool // whether the write only checks the condition, as a ConditionCheck does
	condition  *condition
	returnsOld bool // whether the error of a failed condition must contain the old item
}

// change is the effect of a write: the item before and after it. A nil item means that the
// item does not exist.
type change struct {
	table  *table
	key    []byte // Store key of the item
	before item
	after  item
}

// apply executes the write in tx. If it returns an error, it has not changed the item.
func (e *Engine) apply(tx Tx, w *write, now time.Time) (change, error) {
	t, err := e.table(tx, w.table)
	if err != nil {
		return change{}, err
	}
	key, err := w.place(t)
	if err != nil {
		return change{}, err
	}
	if err := t.sweep(tx, now); err != nil {
		return change{}, err
	}
	before, err := t.load(tx, key, now)
	if err != nil {
		return change{}, err
	}
	if !w.condition.holds(before) {
		if !w.returnsOld {
			before = nil
		}
		return change{}, conditionFailed(before)
	}
	if w.check {
		return change{t, key, before, before}, nil
	}
	after, err := w.result(before)
	if err != nil {
		return change{}, err
	}
	return change{t, key, before, after}, t.store(tx, key, before, after)
}

// place returns the Store key of the item to write. It returns an error if the item or the key
// does not fit the table's key schema.
func (w *write) place(t *table) ([]byte, error) {
	if w.put.given {
		return t.keyIn(w.put.value)
	}
	if w.update != nil {
		if err := w.update.checkKey(t); err != nil {
			return nil, err
		}
	}
	return t.key(w.key.value)
}

// result returns the item after the write. The parameter "before" is the item before the write.
func (w *write) result(before item) (item, error) {
	switch {
	case w.delete:
		return nil, nil
	case w.put.given:
		return w.put.value, nil
	}
	base := before
	if base == nil {
		base = w.key.value
	}
	after, err := w.update.apply(base)
	if err != nil {
		return nil, err
	}
	return after, checkItemSize(after, "Item size to update has exceeded the maximum allowed size")
}

func checkItemSize(it item, message string) error {
	if it.size() > maxItemSize {
		return invalid(message)
	}
	for _, a := range it {
		if a.value.depth() > maxNesting {
			return invalid(textNesting)
		}
	}
	return nil
}

// load returns the item with the given Store key. It returns nil if the item does not exist, or
// if TTL has deleted it.
func (t *table) load(tx Tx, key []byte, now time.Time) (item, error) {
	stored := tx.Get(key)
	if stored == nil {
		return nil, nil
	}
	it, err := readItem(stored)
	if err != nil || t.swept(it, now) {
		return nil, err
	}
	return it, nil
}

// store creates, replaces or deletes an item in the Store. The parameters "before" and "after" are
// the item before and after the write, or nil if the item does not exist then.
func (t *table) store(tx Tx, key []byte, before, after item) error {
	if err := t.moveExpiry(tx, key, before, after); err != nil {
		return err
	}
	if after == nil {
		return tx.Delete(key)
	}
	return tx.Put(key, appendItem(make([]byte, 0, 256), after))
}

// writeOne executes an operation that consists of one write. The given function selects the
// attributes of the reply.
func (e *Engine) writeOne(ctx context.Context, req *request, w *write, attributes func(change) item) ([]byte, error) {
	var done change
	err := e.change(ctx, func(tx Tx) error {
		var err error
		done, err = e.apply(tx, w, time.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	r := newReply()
	r.attributes("Attributes", attributes(done))
	r.consumed(req.capacity, capacity{table: w.table, write: writeUnits(done.before, done.after)})
	return r.end(), nil
}

// newWrite checks the request parameters that all kinds of writes share, and returns a write that
// contains these parameters. For the parameter "expressions", see checkGiven.
func (e *Engine) newWrite(req *request, expressions string) (*write, *scope, error) {
	if err := req.check(); err != nil {
		return nil, nil, err
	}
	s := newScope(req)
	if err := s.checkGiven(req.condition.given || req.update.given, expressions); err != nil {
		return nil, nil, err
	}
	w := &write{table: req.table, key: req.key, returnsOld: req.returnsOld == "ALL_OLD"}
	var err error
	w.condition, err = e.condition("ConditionExpression", req.condition, s)
	return w, s, err
}

// newPut returns the write that a put request describes.
func (e *Engine) newPut(req *request) (*write, error) {
	if !req.item.given {
		return nil, missing("item")
	}
	w, s, err := e.newWrite(req, "ConditionExpression is null")
	if err != nil {
		return nil, err
	}
	if err := checkItemSize(req.item.value, "Item size has exceeded the maximum allowed size"); err != nil {
		return nil, err
	}
	w.put = req.item
	return w, s.checkUsed()
}

// newDelete returns the write that a delete request describes.
func (e *Engine) newDelete(req *request) (*write, error) {
	if !req.key.given {
		return nil, missing("key")
	}
	w, s, err := e.newWrite(req, "ConditionExpression is null")
	if err != nil {
		return nil, err
	}
	w.delete = true
	return w, s.checkUsed()
}

// newUpdate returns the write that an update request describes.
func (e *Engine) newUpdate(req *request) (*write, error) {
	if !req.key.given {
		return nil, missing("key")
	}
	w, s, err := e.newWrite(req, "UpdateExpression and ConditionExpression are null")
	if err != nil {
		return nil, err
	}
	if w.update, err = e.update(req.update, s); err != nil {
		return nil, err
	}
	return w, s.checkUsed()
}

// putItem implements PutItem.
func (e *Engine) putItem(ctx context.Context, req *request) ([]byte, error) {
	old, err := req.returnsAllOld()
	if err != nil {
		return nil, err
	}
	w, err := e.newPut(req)
	if err != nil {
		return nil, err
	}
	return e.writeOne(ctx, req, w, old)
}

// deleteItem implements DeleteItem.
func (e *Engine) deleteItem(ctx context.Context, req *request) ([]byte, error) {
	old, err := req.returnsAllOld()
	if err != nil {
		return nil, err
	}
	w, err := e.newDelete(req)
	if err != nil {
		return nil, err
	}
	return e.writeOne(ctx, req, w, old)
}

// returnsAllOld checks the member ReturnValues of a PutItem or DeleteItem. The reply of these
// operations can contain only the old item, or no item. The result of returnsAllOld is the function
// that selects the attributes of the reply.
func (req *request) returnsAllOld() (func(change) item, error) {
	switch req.returns {
	case "", "NONE":
		return func(change) item { return nil }, nil
	case "ALL_OLD":
		return func(c change) item { return c.before }, nil
	case "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW":
		return nil, invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return nil, notOneOf("returnValues", req.returns, returnValues)
}

const returnValues = "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"

// updateItem implements UpdateItem.
func (e *Engine) updateItem(ctx context.Context, req *request) ([]byte, error) {
	w, err := e.newUpdate(req)
	if err != nil {
		return nil, err
	}
	var attributes func(change) item
	switch req.returns {
	case "", "NONE":
		attributes = func(change) item { return nil }
	case "ALL_OLD":
		attributes = func(c change) item { return c.before }
	case "ALL_NEW":
		attributes = func(c change) item { return c.after }
	case "UPDATED_OLD":
		attributes = func(c change) item { return project(c.before, w.update.targets) }
	case "UPDATED_NEW":
		attributes = func(c change) item { return project(c.after, w.update.targets) }
	default:
		return nil, notOneOf("returnValues", req.returns, returnValues)
	}
	return e.writeOne(ctx, req, w, attributes)
}
