package localdynamo

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// read contains the parameters for reading one item by its primary key. All operations that read
// single items use this type.
type read struct {
	table      string
	key        item
	projection []expr.Path
}

// newRead checks the members of a request and returns the read that the request describes.
func (e *Engine) newRead(req *request) (*read, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	if !req.key.given {
		return nil, missing("key")
	}
	s := newScope(req)
	if err := s.checkGiven(req.projection.given, "ProjectionExpression is null"); err != nil {
		return nil, err
	}
	projection, err := e.projection(req.projection, s)
	if err != nil {
		return nil, err
	}
	return &read{req.table, req.key.value, projection}, s.checkUsed()
}

// find returns the item that r selects, and the item's size in bytes. It returns nil if the
// item does not exist.
func (e *Engine) find(tx Tx, r *read, now time.Time) (found item, size int, err error) {
	t, err := e.table(tx, r.table)
	if err != nil {
		return nil, 0, err
	}
	key, err := t.key(r.key)
	if err != nil {
		return nil, 0, err
	}
	if found, err = t.load(tx, key, now); err != nil || found == nil {
		return nil, 0, err
	}
	size = found.size()
	if r.projection != nil {
		found = append(item{}, project(found, r.projection)...)
	}
	return found, size, nil
}

// getItem implements GetItem.
func (e *Engine) getItem(ctx context.Context, req *request) ([]byte, error) {
	one, err := e.newRead(req)
	if err != nil {
		return nil, err
	}
	var found item
	var size int
	err = e.view(ctx, func(tx Tx) error {
		found, size, err = e.find(tx, one, time.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	r := newReply()
	if found != nil {
		r.item("Item", found)
	}
	r.consumed(req.capacity, capacity{table: req.table, read: readUnits(size, req.consistent)})
	return r.end(), nil
}
