package localdynamo

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"time"
)

// sweepAfter is the time between an item's expiry and the item's deletion by TTL. DynamoDB
// takes up to a few days, and returns the item until it is deleted. An hour is long enough to
// expose code that relies on prompt deletion.
const sweepAfter = time.Hour

// TTL ignores an expiry time that is at least staleAfter in the past. DynamoDB also ignores expiry
// times that are more than five years in the past, because they are probably mistakes.
const staleAfter = 5 * 365 * 24 * time.Hour

// maxSwept is the maximum number of expired items that one write deletes from the Store.
const maxSwept = 25

// expiry returns the expiry time of the item in Unix seconds. ok is false if the item has no
// expiry time.
func (t *table) expiry(it item) (second int64, ok bool) {
	if t.TTL == "" {
		return 0, false
	}
	v := it.get(t.TTL)
	if v.kind != kindN {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(v.text, 64)
	return int64(seconds), err == nil && seconds >= 0 && seconds < 1<<62
}

// swept reports whether the item counts as deleted by TTL at the time "now". The engine treats such
// an item as deleted, even if the Store still contains it.
func (t *table) swept(it item, now time.Time) bool {
	second, ok := t.expiry(it)
	if !ok {
		return false
	}
	age := now.Unix() - second
	return age >= int64(sweepAfter.Seconds()) && age < int64(staleAfter.Seconds())
}

// expiryKey returns the Store key of the expiry entry (prefix x) for the item with the given
// Store key.
func (t *table) expiryKey(key []byte, second int64) []byte {
	b := appendTablePrefix(nil, prefixExpiry, t.Name)
	b = binary.BigEndian.AppendUint64(b, uint64(second))
	return append(b, key...)
}

// moveExpiry updates the expiry entry of one item. The parameters "before" and "after" are the item
// before and after a write.
func (t *table) moveExpiry(tx Tx, key []byte, before, after item) error {
	was, had := t.expiry(before)
	is, has := t.expiry(after)
	if had == has && was == is {
		return nil
	}
	if had {
		if err := tx.Delete(t.expiryKey(key, was)); err != nil {
			return err
		}
	}
	if !has {
		return nil
	}
	return tx.Put(t.expiryKey(key, is), []byte{1})
}

// sweep deletes from the Store at most maxSwept items that count as deleted by TTL at the given
// time. Every write calls sweep, so that the Store does not grow forever: the engine has no
// background goroutine.
func (t *table) sweep(tx Tx, now time.Time) error {
	if t.TTL == "" {
		return nil
	}
	waiting := appendTablePrefix(nil, prefixExpiry, t.Name)
	until := now.Add(-sweepAfter).Unix()
	from := t.expiryKey(nil, max(0, now.Add(-staleAfter).Unix()+1))
	to := t.expiryKey(nil, max(0, until+1))
	var due [][]byte
	for key := range tx.Range(from, to) {
		if due = append(due, bytes.Clone(key)); len(due) == maxSwept {
			break
		}
	}
	for _, key := range due {
		if err := tx.Delete(key); err != nil {
			return err
		}
		if err := t.sweepItem(tx, key[len(waiting)+8:], now); err != nil {
			return err
		}
	}
	return nil
}

// sweepItem removes the item with the given Store key if it counts as deleted by TTL at the given
// time. The item may be newer than the expiry entry that led to it. Such an entry is left from a
// deleted item, because the write that replaced the deleted item did not see it (load returns nil).
func (t *table) sweepItem(tx Tx, key []byte, now time.Time) error {
	stored := tx.Get(key)
	if stored == nil {
		return nil
	}
	it, err := readItem(stored)
	if err != nil || !t.swept(it, now) {
		return err
	}
	return tx.Delete(key)
}

// setTTL turns TTL on for the given attribute, or off if attribute is empty. Then it rebuilds the
// expiry entries of the table. It deletes the items that count as deleted by TTL at the time "now",
// because they would otherwise exist again.
func (t *table) setTTL(tx Tx, attribute string, now time.Time) error {
	if err := deleteAll(tx, appendTablePrefix(nil, prefixExpiry, t.Name)); err != nil {
		return err
	}
	before := *t
	t.TTL = attribute
	whole := appendTablePrefix(nil, prefixItem, t.Name)
	var waiting, gone [][]byte
	for key, stored := range tx.Range(whole, after(whole)) {
		it, err := readItem(stored)
		if err != nil {
			return err
		}
		if before.swept(it, now) {
			gone = append(gone, bytes.Clone(key))
		} else if second, ok := t.expiry(it); ok {
			waiting = append(waiting, t.expiryKey(key, second))
		}
	}
	for _, key := range gone {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	for _, key := range waiting {
		if err := tx.Put(key, []byte{1}); err != nil {
			return err
		}
	}
	return t.save(tx)
}

// updateTimeToLive implements UpdateTimeToLive. The change takes effect immediately.
func (e *Engine) updateTimeToLive(ctx context.Context, body string) ([]byte, error) {
	var in struct {
		TableName               string
		TimeToLiveSpecification *struct {
			AttributeName string
			Enabled       bool
		}
	}
	if err := readInput(body, &in); err != nil {
		return nil, err
	}
	to := in.TimeToLiveSpecification
	switch {
	case to == nil:
		return nil, missing("timeToLiveSpecification")
	case to.AttributeName == "":
		return nil, invalid("TimeToLiveSpecification.AttributeName must be non empty")
	}
	_, err := e.changeTable(ctx, in.TableName, func(tx Tx, t *table) error {
		switch {
		case to.Enabled && t.TTL == to.AttributeName:
			return invalid("TimeToLive is already enabled")
		case !to.Enabled && t.TTL == "":
			return invalid("TimeToLive is already disabled")
		case t.TTL != "" && t.TTL != to.AttributeName:
			return invalidf("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.TTL)
		case to.Enabled:
			return t.setTTL(tx, to.AttributeName, time.Now())
		}
		return t.setTTL(tx, "", time.Now())
	})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"TimeToLiveSpecification": to}), nil
}

// describeTimeToLive implements DescribeTimeToLive.
func (e *Engine) describeTimeToLive(ctx context.Context, body string) ([]byte, error) {
	t, err := e.readTable(ctx, body)
	if err != nil {
		return nil, err
	}
	description := map[string]any{"TimeToLiveStatus": "DISABLED"}
	if t.TTL != "" {
		description = map[string]any{"TimeToLiveStatus": "ENABLED", "AttributeName": t.TTL}
	}
	return encode(map[string]any{"TimeToLiveDescription": description}), nil
}
