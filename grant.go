package leasehold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Grant is a detached lock as plain data, to be handed to another process, as
// JSON for one: {"table","key","sortKey","owner","token","grant","versions",
// "leaseMs","trustedUntil"}. Whoever has it can resume the lock, once.
type Grant struct {
	Table        string
	Key          Key
	Owner        string
	Token        int64
	ID           string   // of the grant
	Versions     []string // confirmed last, and any unresolved
	Lease        time.Duration
	TrustedUntil time.Time // by the granting host's clock; for people
}

type grantJSON struct {
	Table        string   `json:"table"`
	Key          string   `json:"key"`
	SortKey      string   `json:"sortKey,omitempty"`
	Owner        string   `json:"owner"`
	Token        int64    `json:"token"`
	Grant        string   `json:"grant"`
	Versions     []string `json:"versions"`
	LeaseMs      int64    `json:"leaseMs"`
	TrustedUntil string   `json:"trustedUntil"`
}

// MarshalJSON writes the grant for another process.
func (g Grant) MarshalJSON() ([]byte, error) {
	return json.Marshal(grantJSON{
		Table: g.Table, Key: g.Key.Partition, SortKey: g.Key.Sort, Owner: g.Owner, Token: g.Token, Grant: g.ID,
		Versions: g.Versions, LeaseMs: g.Lease.Milliseconds(), TrustedUntil: formatTime(g.TrustedUntil),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (g *Grant) UnmarshalJSON(b []byte) error {
	var in grantJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("leasehold: grant: %w", err)
	}
	until, err := time.Parse(time.RFC3339, in.TrustedUntil)
	if err != nil {
		return fmt.Errorf("leasehold: grant of %q: trustedUntil: %w", in.Key, err)
	}
	*g = Grant{
		Table: in.Table, Key: Key{in.Key, in.SortKey}, Owner: in.Owner, Token: in.Token, ID: in.Grant,
		Versions: in.Versions, Lease: time.Duration(in.LeaseMs) * time.Millisecond, TrustedUntil: until,
	}
	return nil
}

// Detach ends this handle without releasing: renewals stop, the context ends
// with ErrDetached, and the grant can be taken up by Client.Resume elsewhere
// before its lease runs out. It sends nothing.
func (l *Lock) Detach() (Grant, error) {
	h := l.h
	if err := l.Err(); err != nil {
		return Grant{}, err
	}
	until := l.TrustedUntil()
	h.mu.Lock()
	shared := len(h.handles) > 1
	h.mu.Unlock()
	if h.session != nil {
		return Grant{}, h.c.unsupported("Detach together with SharedLease")
	}
	if h.want.mode != protocol.ModePlain {
		return Grant{}, h.c.unsupported("Detach of a read/write lock")
	}
	if shared {
		return Grant{}, fmt.Errorf("leasehold: detach %v: other handles share the grant: release them first", h.key)
	}
	if !h.end(ErrDetached) {
		return Grant{}, h.ended()
	}
	h.c.lines.pass(h.key, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	return Grant{
		Table: h.c.cfg.Table, Key: h.key, Owner: h.owner, Token: h.token, ID: h.grant,
		Versions: h.asHeld().Versions, Lease: h.timing.lease, TrustedUntil: until,
	}, nil
}

// Resume takes up a grant that Lock.Detach laid down, in this process or
// another, by one renewal. ErrLost if it has lapsed and was taken, or was
// resumed elsewhere. ErrUnknownOutcome if ctx ended without an answer: call it
// again on the same client, which knows what it has tried.
func (c *Client) Resume(ctx context.Context, g Grant, opts ...RenewOption) (*Lock, error) {
	r := renewal{lease: g.Lease}
	for _, o := range opts {
		o.toRenew(&r)
	}
	key, err := c.checkGrant(g, &r)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("leasehold: resume %v: %w", key, context.Cause(ctx))
	}
	if !c.enter() {
		return nil, ErrClosed
	}
	defer c.leave()
	policy, err := c.checkPolicy(byConfig)
	if err != nil {
		return nil, err
	}
	want := &request{key: key, timing: c.timing.scaled(r.lease), policy: policy}
	type result struct {
		h   *holding
		err error
	}
	done := make(chan result, 1)
	ctx, stop := c.untilClosing(ctx)
	defer stop()
	c.detach(func() {
		h, err := c.resume(ctx, g, want, r)
		done <- result{h, err}
	})
	select {
	case res := <-done:
		if res.err != nil {
			return nil, res.err
		}
		if c.isClosing() {
			c.detach(res.h.abandon)
			return nil, ErrClosed
		}
		return res.h.first, nil
	case <-ctx.Done():
	}
	c.detach(func() {
		// What comes too late is laid down again: a later Resume on this
		// client takes it up.
		if res := <-done; res.h != nil {
			res.h.end(ErrDetached)
			c.lines.pass(key, res.h)
			c.resumes.Add(g.ID, []string{res.h.currentRecord().Version}, c.now().Mono)
		}
	})
	return nil, c.unknownOutcome("renew", key, context.Cause(ctx))
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
		return g.Key, fmt.Errorf("leasehold: resume %q in table %s: the grant lacks its %s: pass what Lock.Detach returned, or its JSON read back",
			g.Key.String(), c.cfg.Table, strings.Join(missing, ", "))
	}
	if g.Table != c.cfg.Table {
		return g.Key, fmt.Errorf("leasehold: resume %v: the grant is of table %q, this client of %q", g.Key, g.Table, c.cfg.Table)
	}
	key, err := c.checkKey("resume", g.Key)
	if err != nil {
		return key, err
	}
	if err := c.checkLease(key, r.lease); err != nil {
		return key, err
	}
	return key, c.checkChanges(key, &r.changes)
}

// resume sends the renewal until it is answered.
func (c *Client) resume(ctx context.Context, g Grant, want *request, r renewal) (*holding, error) {
	versions, err := c.resumable(ctx, g, want.key)
	if err != nil {
		return nil, err
	}
	hold := protocol.Hold{Key: protocol.Key(want.key), Owner: g.Owner, Grants: []string{g.ID}, Token: g.Token, Versions: versions}
	var tried []attempt
	for n := 0; ; n++ {
		a := c.newAttempt(r.lease)
		ans := c.write(ctx, c.proto.Renew(hold, renewalOf(a, protocol.Changes(r.changes))), want.grantLimit())
		switch {
		case ans.Effect == decide.Applied:
			return c.resumed(ctx, want, a, ans.item)
		case ans.Cause == decide.ConditionFailed:
			item, ok := c.shown(ctx, want.key, ans)
			if !ok {
				break
			}
			return c.resumedUnseen(ctx, g, want, append(tried, a), item)
		case ans.Effect == decide.Unknown:
			tried = append(tried, a)
			hold.Versions = append(hold.Versions, a.version)
			c.resumes.Add(g.ID, []string{a.version}, c.now().Mono)
		case ans.Cause == decide.Refused && len(tried) == 0:
			return nil, opError("renew", c.cfg.Table, want.key, ans.err)
		case ans.Cause == decide.Refused:
			return nil, c.unknownOutcome("renew", want.key, ans.err)
		}
		if len(tried) < manyTried {
			pause(ctx.Done(), c.backoff(n, time.Second))
		}
		if ctx.Err() != nil || len(tried) >= manyTried {
			return nil, c.unknownOutcome("renew", want.key, ans.err)
		}
	}
}

// resumable returns the versions that the record may show of a grant: those it
// came with, and those of earlier calls. Where they are too many for a condition
// that has to name the attempts of this call as well, the record is read.
func (c *Client) resumable(ctx context.Context, g Grant, key Key) ([]string, error) {
	versions := slices.Concat(g.Versions, c.resumes.Of(g.ID, c.now().Mono))
	for n := 0; len(versions) > manyTried; n++ {
		ans := c.read(ctx, key)
		if ans.err == nil {
			var shown string
			if r, err := c.decode(key, ans.item); ans.item != nil && err == nil {
				shown = r.Version
			}
			return decide.StillToName(versions, shown, manyTried), nil
		}
		pause(ctx.Done(), c.backoff(n, time.Second))
		if ctx.Err() != nil || ans.Cause == decide.Refused {
			return nil, c.unknownOutcome("renew", key, errors.Join(context.Cause(ctx), ans.err))
		}
	}
	return versions, nil
}

func (c *Client) resumed(ctx context.Context, want *request, a attempt, item protocol.Item) (*holding, error) {
	r, err := c.decode(want.key, item)
	if err != nil {
		return nil, err
	}
	h := c.newHolding(ctx, want, a, r)
	c.lines.adopt(h)
	return h, nil
}

// resumedUnseen tells an attempt that landed without our knowing from a grant
// that is gone.
func (c *Client) resumedUnseen(ctx context.Context, g Grant, want *request, tried []attempt, item protocol.Item) (*holding, error) {
	lost := &LostError{Table: c.cfg.Table, Key: want.key, Token: g.Token, Reason: LostBroken, At: g.TrustedUntil}
	if item == nil {
		return nil, lost
	}
	r, err := c.decode(want.key, item)
	if err != nil {
		return nil, errors.Join(lost, err)
	}
	for _, a := range tried {
		if a.version == r.Version && !r.Released && !c.now().Past(want.timing.trustedFrom(a.sent)) {
			return c.resumed(ctx, want, a, item)
		}
	}
	lost.By = &r
	if !r.Released || r.Grant != g.ID {
		lost.Reason = LostReplaced
	}
	return nil, lost
}
