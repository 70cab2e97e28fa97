package localdynamo

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	maxTransact     = 100
	maxTransactSize = 4 << 20
)

// kind returns the name of an action's only member, such as Put. It returns an error unless the
// action has exactly one member.
func (a *action) kind() (string, error) {
	switch len(a.kinds) {
	case 0:
		return "", invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
	case 1:
		return a.kinds[0], nil
	}
	return "", invalid("TransactItems can only contain one of Check, Put, Update or Delete")
}

func checkActions(n int) error {
	switch {
	case n == 0:
		return invalid("1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case n > maxTransact:
		return invalidf("1 validation error detected: Value '[%d items]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to %d", n, maxTransact)
	}
	return nil
}

// transactWriteItems implements TransactWriteItems.
func (e *Engine) transactWriteItems(ctx context.Context, req *request) ([]byte, error) {
	if err := checkActions(len(req.actions)); err != nil {
		return nil, err
	}
	if err := checkToken(req.token); err != nil {
		return nil, err
	}
	writes := make([]*write, len(req.actions))
	for i := range req.actions {
		var err error
		if writes[i], err = e.newTransactWrite(i+1, &req.actions[i]); err != nil {
			return nil, err
		}
	}
	var used tally
	err := e.change(ctx, func(tx Tx) error {
		now := time.Now()
		repeated, err := remember(tx, req.token.value, fingerprint(req), now)
		if err != nil {
			return err
		}
		used, err = e.transact(tx, writes, repeated, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	r := newReply()
	r.consumedList(req.capacity, used, true)
	return r.end(), nil
}

// newTransactWrite returns the write that the nth action of a transaction describes.
func (e *Engine) newTransactWrite(n int, a *action) (*write, error) {
	kind, err := a.kind()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Put":
		return e.newPut(&a.request)
	case "Delete":
		return e.newDelete(&a.request)
	case "Update":
		if !a.request.update.given {
			return nil, missing("transactItems." + strconv.Itoa(n) + ".member.update.updateExpression")
		}
		return e.newUpdate(&a.request)
	case "ConditionCheck":
		if !a.request.condition.given {
			return nil, missing("transactItems." + strconv.Itoa(n) + ".member.conditionCheck.conditionExpression")
		}
		w, err := e.newDelete(&a.request)
		if err != nil {
			return nil, err
		}
		w.delete, w.check = false, true
		return w, nil
	}
	return nil, malformed("an action of a transaction is a Put, an Update, a Delete or a ConditionCheck, not a " + kind)
}

// transact executes all writes. If one fails, the error contains a cancellation reason for each
// write. If repeated is true, an earlier request with the same token has executed the writes. Then
// transact only reads their items, to compute the consumed capacity.
func (e *Engine) transact(tx Tx, writes []*write, repeated bool, now time.Time) (used tally, err error) {
	if err := e.checkDistinct(tx, writes); err != nil {
		return nil, err
	}
	reasons := make([]reason, len(writes))
	cancelled, size := false, 0
	for i, w := range writes {
		if repeated {
			found, err := e.peek(tx, w, now)
			if err != nil {
				return nil, err
			}
			used.add(w.table, 2*readUnits(found.size(), true), 0)
			continue
		}
		done, err := e.apply(tx, w, now)
		if reasons[i], err = reasonOf(err); err != nil {
			return nil, err
		}
		cancelled = cancelled || reasons[i].code != "None"
		size += max(done.before.size(), done.after.size())
		used.add(w.table, 0, 2*writeUnits(done.before, done.after))
	}
	switch {
	case cancelled:
		return nil, canceled(reasons)
	case size > maxTransactSize:
		return nil, invalid("Transaction request cannot exceed 4 MB in size")
	}
	return used, nil
}

// peek returns the item that w would change, but does not change the item.
func (e *Engine) peek(tx Tx, w *write, now time.Time) (item, error) {
	t, err := e.table(tx, w.table)
	if err != nil {
		return nil, err
	}
	place, err := w.place(t)
	if err != nil {
		return nil, err
	}
	return t.load(tx, place, now)
}

// checkDistinct returns an error if a transaction uses a table that does not exist, or uses the
// same item twice. It is called before any write is executed. It ignores invalid keys, because
// apply reports them as cancellation reasons.
func (e *Engine) checkDistinct(tx Tx, writes []*write) error {
	var places [][]byte
	for _, w := range writes {
		t, err := e.table(tx, w.table)
		if err != nil {
			return err
		}
		if place, err := w.place(t); err == nil {
			places = append(places, place)
		}
	}
	if hasDuplicates(places) {
		return errSameItem
	}
	return nil
}

var errSameItem = invalid("Transaction request cannot include multiple operations on one item")

// reasonOf converts the error of one action to a cancellation reason. If the error cannot be a
// cancellation reason, reasonOf returns the error itself, and the whole request fails with that
// error.
func reasonOf(err error) (reason, error) {
	if err == nil {
		return reason{code: "None"}, nil
	}
	var refused *apiError
	if !errors.As(err, &refused) {
		return reason{}, err
	}
	switch refused.kind {
	case typeConditionFails:
		return reason{"ConditionalCheckFailed", refused.message, refused.item}, nil
	case typeValidation:
		return reason{"ValidationError", refused.message, nil}, nil
	}
	return reason{}, err
}

func canceled(reasons []reason) error {
	codes := make([]string, len(reasons))
	for i, why := range reasons {
		codes[i] = why.code
	}
	e := newError(typeCanceled, "Transaction cancelled, please refer cancellation reasons for specific reasons ["+strings.Join(codes, ", ")+"]")
	e.reasons = reasons
	return e
}

// transactGetItems implements TransactGetItems.
func (e *Engine) transactGetItems(ctx context.Context, req *request) ([]byte, error) {
	if err := checkActions(len(req.actions)); err != nil {
		return nil, err
	}
	reads := make([]*read, len(req.actions))
	for i := range req.actions {
		kind, err := req.actions[i].kind()
		if err == nil && kind != "Get" {
			err = malformed("an action of TransactGetItems is a Get, not a " + kind)
		}
		if err == nil {
			reads[i], err = e.newRead(&req.actions[i].request)
		}
		if err != nil {
			return nil, err
		}
	}
	var used tally
	found := make([]item, len(reads))
	err := e.view(ctx, func(tx Tx) error {
		switch err := e.checkNoDuplicates(tx, reads); {
		case errors.Is(err, errSameKey):
			return errSameItem
		case err != nil:
			return err
		}
		for i, one := range reads {
			var size int
			var err error
			if found[i], size, err = e.find(tx, one, time.Now()); err != nil {
				return err
			}
			used.add(one.table, 2*readUnits(size, true), 0)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := newReply()
	r.body = appendJSONList(r.member("Responses").body, found, func(b []byte, it item) []byte {
		one := newReply()
		if it != nil {
			one.item("Item", it)
		}
		return append(b, one.end()...)
	})
	r.consumedList(req.capacity, used, true)
	return r.end(), nil
}
