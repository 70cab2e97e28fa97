package leasehold

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Resume resumes a detached lock, by one renewal: the grant that Lock.Detach
// returned, in this process or another. ErrLost if it has expired and was taken
// over, or was resumed elsewhere. ErrUnknownOutcome if ctx ended without an
// answer: call it again on the same client, which knows what it has tried.
func (c *Client) Resume(ctx context.Context, g Grant, opts ...RenewOption) (*Lock, error) {
	r := renewal{lease: g.Lease}
	if err := noneNil(c, "resume", g.Key, opts); err != nil {
		return nil, err
	}
	for _, o := range opts {
		o.toRenew(&r)
	}
	key, err := c.checkGrant(g, &r)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, c.errorf("resume", key, "%w", context.Cause(ctx))
	}
	if !c.enter() {
		return nil, c.afterClose("resume", key)
	}
	defer c.leave()
	policy, err := c.checkPolicy(byConfig)
	if err != nil {
		return nil, err
	}
	want := &request{Want: seek.Want{Key: protocol.Key(key), Timing: c.timing.Scaled(r.lease)}, policy: policy}
	var tried attempts.Sequence[attempt]
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	end, ok := c.resuming.begin(ctx, g.ID)
	if !ok { // of an earlier call, which has had no answer yet
		return nil, c.unknownOutcome("resume", key, context.Cause(ctx))
	}
	var h *holding
	done, unknown := c.outlive(ctx, &tried, func() { h, err = c.resume(ctx, g, want, r, &tried) })
	if unknown != nil {
		c.detach(func() {
			defer end()
			if <-done; h != nil {
				c.detachAgain(g, h)
			}
		})
		return nil, c.unknownOutcome("resume", key, unknown)
	}
	defer end()
	if err != nil {
		return nil, err
	}
	if c.isClosing() {
		c.detach(h.GiveBack)
		return nil, c.afterClose("resume", key)
	}
	return h.first, nil
}

// detachAgain detaches a grant whose Resume was answered after its caller had left: a
// later Resume on this client resumes it. After Close there is none.
func (c *Client) detachAgain(g Grant, h *holding) {
	if c.isClosing() {
		h.GiveBack()
		return
	}
	h.end(ErrDetached)
	h.passTurn()
	c.resumes.Add(g.ID, h.asHeld().Versions, c.now().Mono)
}

// resuming lets one Resume of a grant be under way at a time. Two could each name the
// other's attempt in their conditions, and both would be told that they hold the lock.
// It is safe for concurrent use.
type resuming struct {
	mu sync.Mutex
	by map[string]chan struct{} // id of the grant; closed at the end
}

// begin waits until no other Resume of the grant is under way, and keeps others
// out until end is called; false: ctx ended before that.
func (r *resuming) begin(ctx context.Context, id string) (end func(), ok bool) {
	for {
		r.mu.Lock()
		other, busy := r.by[id]
		if !busy {
			if r.by == nil {
				r.by = map[string]chan struct{}{}
			}
			own := make(chan struct{})
			r.by[id] = own
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.by, id)
				close(own)
			}, true
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (c *Client) checkGrant(g Grant, r *renewal) (Key, error) {
	var missing []string
	for _, field := range []struct {
		name string
		lost bool
	}{
		{"table", g.Table == ""},
		{"key", g.Key.Partition == ""},
		{"owner", g.Owner == "" && c.proto.Owned()},
		{"token", g.Token == 0},
		{"id", g.ID == ""},
		{"versions", len(g.Versions) == 0},
		{"lease", r.lease == 0},
	} {
		if field.lost {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return g.Key, c.errorf("resume", g.Key, "the grant lacks its %s: pass what Lock.Detach returned, or its JSON read back",
			strings.Join(missing, ", "))
	}
	if g.Table != c.cfg.Table {
		return g.Key, c.errorf("resume", g.Key, "the grant is of table %q: use a client of that", g.Table)
	}
	key, err := c.checkKey("resume", g.Key)
	if err != nil {
		return key, err
	}
	if err := c.checkLease("resume", key, r.lease); err != nil {
		return key, err
	}
	return key, c.checkChanges("resume", key, &r.changes)
}

// resume sends the renewal until it is answered.
func (c *Client) resume(ctx context.Context, g Grant, want *request, r renewal, tried *attempts.Sequence[attempt]) (*holding, error) {
	row := ownRow{c: c, key: want.key(), proto: c.proto}
	earlier := c.resumes.Of(g.ID, c.now().Mono) // calls' attempts without an answer
	versions, _, err := row.narrow(ctx, ctx, slices.Concat(g.Versions, earlier), tried, decide.Never)
	if err != nil {
		return nil, c.unknownOutcome("resume", want.key(), errors.Join(context.Cause(ctx), err))
	}
	defer func() { c.resumes.Add(g.ID, tried.Versions(), c.now().Mono) }()
	res := tried.Run(context.WithoutCancel(ctx), ctx, c.requests, attempts.Operation[attempt]{
		Key: want.Key,
		Next: func() (attempt, *protocol.Write) {
			a := c.newAttempt(r.lease)
			return a, c.proto.Renew(protocol.Hold{
				Key: want.Key, Owner: g.Owner, Grants: []string{g.ID}, Token: g.Token,
				Versions: slices.Concat(versions, tried.Versions()),
			}, protocol.Renewal{Version: a.Version, Lease: a.Lease, Now: c.wall(), Changes: protocol.Changes(r.changes)})
		},
		Within: want.Within(nil),
		Shows: func(item protocol.Item, sent []attempt) (attempt, bool) {
			shown, err := c.decode(want.key(), item)
			a, ok := attempts.Find(sent, shown.Version)
			return a, ok && err == nil && !shown.Released && !c.now().Past(want.Timing.TrustedFrom(a.Sent))
		},
		Throttled: c.throttled(ctx, want.key(), g.Token),
	})
	switch res.Outcome {
	case attempts.Applied:
		return c.resumed(ctx, want, res.Attempt, res.Item)
	case attempts.Rejected:
		return nil, c.notResumed(g, want, res.Item)
	}
	if len(earlier) > 0 { // they may be applied yet, whatever became of this call's
		return nil, c.unknownOutcome("resume", want.key(), joined(context.Cause(ctx), res.Err))
	}
	return nil, c.notDone(ctx, "resume", want.key(), res, tried)
}

func (c *Client) resumed(ctx context.Context, want *request, a attempt, item protocol.Item) (*holding, error) {
	r, err := c.observer.Decode(want.Key, item)
	if err != nil {
		return nil, err
	}
	h := c.newHolding(ctx, want, seek.Grant{Attempt: a.Attempt, Record: r})
	c.seek.Lines.GrantedOutOfTurn(want.Key, h)
	return h, nil
}

// notResumed says that a grant is gone, and what the record shows in its place.
func (c *Client) notResumed(g Grant, want *request, item protocol.Item) error {
	lost := &LostError{Table: c.cfg.Table, Key: want.key(), Token: g.Token, Reason: LostBroken, At: g.TrustedUntil}
	if now := c.wall().Round(0); now.Before(lost.At) {
		lost.At = now
	}
	if item == nil {
		return lost
	}
	r, err := c.decode(want.key(), item)
	if err != nil {
		return errors.Join(lost, err)
	}
	lost.seen(r, g.ID)
	return lost
}
