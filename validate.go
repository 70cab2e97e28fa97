package leasehold

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/attribute"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// maxItemBytes is DynamoDB's limit on the size of an item (DynamoDB service quotas, "Item
// size").
const maxItemBytes = 400 << 10

// newRequests returns a request for each key, in the order in which the keys were first
// given. If a key or an option is invalid, or ctx has ended, it returns an error.
func (c *Client) newRequests(ctx context.Context, keys []Key, opts []AcquireOption) ([]*request, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("leasehold: acquire in table %s: no keys: name at least one", c.cfg.Table)
	}
	var wants []*request
	seen := map[Key]bool{}
	for _, key := range keys {
		want, err := c.newRequest(ctx, key, opts)
		if err != nil {
			return nil, err
		}
		if !seen[want.Key] {
			seen[want.Key] = true
			want.OneOfSeveral = len(keys) > 1
			if want.OneOfSeveral && !want.Once.None() {
				return nil, c.cfg.unsupported("Once or Every for several keys: acquire one key with it")
			}
			wants = append(wants, want)
		}
	}
	return wants, nil
}

// newRequest returns the request for one key of a call that acquires. It returns an error if an
// option is invalid, or if ctx has ended. Where opts sets nothing, the client's defaults apply.
// WithSortKey sets the sort key unless key already has one.
func (c *Client) newRequest(ctx context.Context, key Key, opts []AcquireOption) (*request, error) {
	r := &request{Want: acquire.Want{Key: Key{Partition: key.Partition}, Timing: c.timing, Delete: c.env.DeletesByDefault}}
	if err := apply(c, "acquire", r.Key, opts, AcquireOption.toAcquire, r); err != nil {
		return nil, err
	}
	r.Key.Sort = cmp.Or(key.Sort, r.Key.Sort)
	if c.holds.Shares() {
		switch {
		case r.Timing != c.timing:
			return nil, c.cfg.unsupported("WithLease together with SharedLease")
		case r.Manual:
			return nil, c.cfg.unsupported("WithoutRenewal together with SharedLease")
		}
		r.Timing = hold.UnderSession(c.timing)
	}
	key, err := c.lockKey("acquire", r.Key)
	if err != nil {
		return nil, err
	}
	r.Key = key
	if err := c.checkLease("acquire", key, r.Timing.Lease); err != nil {
		return nil, err
	}
	if err := c.completeOnce(r); err != nil {
		return nil, err
	}
	r.Delete = r.Delete && r.Once.None() // with Once or Every the record must remain, because it contains the done mark
	if err := c.checkRelease(r.Delete); err != nil {
		return nil, err
	}
	for _, n := range r.warnings {
		if n.fn == nil || n.left < 0 {
			return nil, c.env.Errorf("acquire", key, "an expiry warning needs a function and a time of 0 or more, not %v", n.left)
		}
	}
	err = c.checkChanges("acquire", key, r.Changes)
	if err == nil && ctx.Err() != nil {
		err = c.env.Errorf("acquire", key, "%w", attempts.Cause(ctx))
	}
	return r, err
}

// newTerms returns the terms of a release: those set when h was acquired, changed by opts. If an
// option is invalid, it returns an error, and the terms without any of opts.
func (c *Client) newTerms(h *hold.Lock, opts []ReleaseOption) (hold.Terms, error) {
	key, plain := h.Key(), hold.Terms{Delete: h.Want().Delete}
	t := plain
	if err := apply(c, "release", key, opts, ReleaseOption.toRelease, &t); err != nil {
		return plain, err
	}
	if err := cmp.Or(c.checkRelease(t.Delete), c.checkChanges("release", key, t.Changes)); err != nil {
		return plain, err
	}
	switch once := h.Want().Once; {
	case t.Delete && !t.Changes.None():
		return plain, c.env.Errorf("release", key,
			"it deletes the record, and with it the data and attributes that it is to store: leave them out, or have it keep the record")
	case t.Done && once.None() && h.IsResumed():
		return plain, c.env.Errorf("release", key,
			"the lock was resumed, and a resumed lock has forgotten Once and Every: leave MarkDone out, "+
				"and the work may be done again, or release with MarkDone instead of Detach")
	case t.Done && once.None():
		return plain, c.env.Errorf("release", key, "it was not acquired with Once or Every: leave MarkDone out, or acquire it so")
	case t.Delete && !once.None():
		return plain, c.env.Errorf("release", key,
			"it was acquired with Once or Every, and deletes the record, which says what is done: leave DeleteOnRelease out")
	}
	return t, nil
}

// apply applies the options in opts to *call, in order: it calls set(option, call) for each option.
// If an option is nil, apply returns an error and applies none of them.
func apply[O comparable, T any](c *Client, op string, key Key, opts []O, set func(O, *T), call *T) error {
	var none O
	if i := slices.Index(opts, none); i >= 0 {
		return c.env.Errorf(op, key, "option %d is nil: leave it out", i+1)
	}
	for _, o := range opts {
		set(o, call)
	}
	return nil
}

// keyWith returns the key of a call that only reads. opts may set the sort key.
func (c *Client) keyWith(op, partition string, opts []KeyOption) (Key, error) {
	key := Key{Partition: partition}
	if err := apply(c, op, key, opts, KeyOption.toGet, &key); err != nil {
		return key, err
	}
	return c.checkKey(op, key)
}

func (c *Client) checkKey(op string, key Key) (Key, error) {
	if key.Sort != "" && !c.env.Caps.SortKey {
		return key, c.cfg.unsupported("sort key")
	}
	key = c.env.Proto.Complete(key)
	if err := c.env.Proto.CheckKey(key); err != nil {
		return key, c.env.Errorf(op, key, "%w", err)
	}
	return key, nil
}

// lockKey checks a key like checkKey. It also refuses the key of a session's row, because
// the row is not a lock.
func (c *Client) lockKey(op string, key Key) (Key, error) {
	key, err := c.checkKey(op, key)
	if err == nil && protocol.IsSessionKey(c.env.Proto, key) {
		err = c.env.Errorf(op, key, "the key belongs to a session: choose one that does not begin with leasehold/session/")
	}
	return key, err
}

func (c *Client) checkLease(op string, key Key, length time.Duration) error {
	if length < minLease {
		return c.env.Errorf(op, key, "lease of %v: at least %v", length, minLease)
	}
	if t := c.timing.Scaled(length); t.Trust() < lease.ShortestTrust {
		return c.env.Errorf(op, key, "lease of %v: the margin, %v, and MaxSkew, %v, leave %v of it to be trusted: at least %v",
			length, t.Margin, t.Skew, t.Trust(), lease.ShortestTrust)
	}
	return nil
}

// checkRelease returns an error if deletes is true and the layout cannot delete a record on
// release. It also returns an error if deletes is false and the layout cannot keep the record.
func (c *Client) checkRelease(deletes bool) error {
	switch {
	case !deletes && !c.env.Caps.KeepOnRelease:
		return c.cfg.unsupported("KeepOnRelease")
	case deletes && !c.env.Caps.DeleteOnRelease:
		return c.cfg.unsupported("DeleteOnRelease")
	}
	return nil
}

func (c *Client) checkChanges(op string, key Key, ch protocol.Changes) error {
	if (ch.SetData || ch.InitialData != nil) && !c.env.Caps.Data {
		return c.cfg.unsupported("data")
	}
	if len(ch.Attributes) > 0 && !c.env.Caps.Attributes {
		return c.cfg.unsupported("attributes")
	}
	size := c.recordOverhead() + len(key.Partition) + len(key.Sort) + max(len(ch.Data), len(ch.InitialData))
	for name, v := range ch.Attributes {
		switch {
		case name == "":
			return c.env.Errorf(op, key, "an attribute needs a name")
		case c.env.Proto.Reserved(name):
			return c.env.Errorf(op, key, "attribute %q is part of the lock record itself: choose another name", name)
		}
		if v != nil { // a nil value removes the attribute
			if where := attribute.EmptyIn(v); where != "" {
				return c.env.Errorf(op, key, "attribute %q%s is a nil value: give it one, or leave it out", name, where)
			}
		}
		size += len(name) + attribute.Bytes(v)
	}
	if size > maxItemBytes {
		return c.env.Errorf(op, key, "the record would have about %d bytes: DynamoDB takes %d: keep large data elsewhere and a reference here",
			size, maxItemBytes)
	}
	return nil
}

// recordOverhead returns the largest size in bytes of this client's records, without the key and
// the caller's data and attributes. It counts owner, ids, numbers and done mark. In the native
// layout it also counts a full queue and the fields "handed" and "noQueueUntil".
func (c *Client) recordOverhead() int {
	const mark = 80 + protocol.LongestLabel
	size := 320 + mark + 2*len(c.env.Owner)
	if c.env.Native != nil {
		size += 60 + protocol.MostWaitersBytes
	}
	return size
}

// completeOnce sets r.Once to the label of Once, or to the current period of Every. It
// returns an error if the label or period is invalid or contradicts another option, or if
// the layout does not support Once and Every.
func (c *Client) completeOnce(r *request) error {
	var problem string
	switch {
	case r.label == nil && r.period == nil:
		return nil
	case c.env.Native == nil:
		return c.cfg.unsupported("Once or Every: give each label or period a key of its own")
	case r.label != nil && r.period != nil:
		problem = "Once and Every: use one of them"
	case r.deleteGiven && r.Delete:
		problem = "DeleteOnRelease deletes the record, and with it what says that the work is done: leave it out, or Once and Every"
	case r.label != nil:
		problem = protocol.LabelProblem(*r.label)
		r.Once = protocol.Once{Label: *r.label}
	default:
		if problem = protocol.PeriodProblem(*r.period); problem == "" {
			r.Once = protocol.PeriodOf(c.env.Wall(), *r.period)
		}
	}
	if problem != "" {
		return c.env.Errorf("acquire", r.Key, "%s", problem)
	}
	return nil
}
