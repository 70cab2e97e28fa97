package leasehold

import (
	"context"
	"strings"

	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/seek"
)

// Resume resumes a detached lock, by one renewal: the grant that Lock.Detach
// returned, in this process or another. ErrLost if it has expired and was taken
// over, or was resumed elsewhere. ErrUnknownOutcome if ctx ended without an
// answer: call it again on the same client, which knows what it has tried. ErrClosed
// if the client is closed meanwhile: the grant is left to its lease, not released.
func (c *Client) Resume(ctx context.Context, g Grant, opts ...RenewOption) (*Lock, error) {
	r := hold.Renewal{Lease: g.Lease}
	if err := noneNil(c, "resume", g.Key, opts); err != nil {
		return nil, err
	}
	for _, o := range opts {
		o.toRenew(&r)
	}
	key, err := c.checkGrant(g, r)
	if err != nil {
		return nil, err
	}
	want := &request{Want: seek.Want{Key: protocol.Key(key), Timing: c.timing.Scaled(r.Lease), Delete: c.cfg.deletesByDefault()}}
	h, err := c.holds.Resume(ctx, hold.Detached{
		Key: protocol.Key(key), Owner: g.Owner, Token: g.Token, Grant: g.ID, Versions: g.Versions, TrustedUntil: g.TrustedUntil,
	}, want.wanted(c), r)
	if err != nil {
		return nil, err
	}
	return lockOf(h.First()), nil
}

func (c *Client) checkGrant(g Grant, r hold.Renewal) (Key, error) {
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
		{"lease", r.Lease == 0},
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
	if err := c.checkLease("resume", key, r.Lease); err != nil {
		return key, err
	}
	return key, c.checkChanges("resume", key, r.Changes)
}
