package leasehold

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/hold"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Grant describes a detached lock, so that another process can resume the lock, once. Its JSON
// object has the fields "table", "key", "sortKey", "owner", "token", "grant", "versions",
// "leaseMs" and "trustedUntil".
type Grant struct {
	Table        string
	Key          Key
	Owner        string
	Token        int64
	ID           string   // id of the grant
	Versions     []string // versions that the record may have: the last confirmed version, and one version for each write without a reply
	Lease        time.Duration
	TrustedUntil time.Time // time until which the lock is trusted, by the wall clock of the host that detached it; for people to read
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

// MarshalJSON returns the grant as JSON, for another process.
func (g Grant) MarshalJSON() ([]byte, error) {
	return json.Marshal(grantJSON{
		Table: g.Table, Key: g.Key.Partition, SortKey: g.Key.Sort, Owner: g.Owner, Token: g.Token, Grant: g.ID,
		Versions: g.Versions, LeaseMs: g.Lease.Milliseconds(), TrustedUntil: formatTime(g.TrustedUntil),
	})
}

// UnmarshalJSON reads the JSON that MarshalJSON returned.
func (g *Grant) UnmarshalJSON(b []byte) error {
	var in grantJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("leasehold: grant: %w", err)
	}
	until, err := parseTime(in.TrustedUntil)
	if err != nil {
		return fmt.Errorf("leasehold: grant of %q: trustedUntil: %w", in.Key, err)
	}
	if in.LeaseMs < 0 || in.LeaseMs > longestLeaseMs {
		return fmt.Errorf("leasehold: grant of %q: leaseMs is %d: it must be from 0 to %d", in.Key, in.LeaseMs, longestLeaseMs)
	}
	*g = Grant{
		Table: in.Table, Key: Key{Partition: in.Key, Sort: in.SortKey}, Owner: in.Owner, Token: in.Token, ID: in.Grant,
		Versions: in.Versions, Lease: durations.Times(time.Millisecond, in.LeaseMs), TrustedUntil: until,
	}
	return nil
}

// longestLeaseMs is the longest lease in milliseconds that a Duration can hold. A longer lease
// would overflow, and could turn into a shorter one.
const longestLeaseMs = math.MaxInt64 / int64(time.Millisecond)

// Detach ends this handle without releasing the key: renewals stop, and the context ends with
// ErrReleased. Client.Resume resumes the grant, in any process, before its lease expires. Detach
// sends no request, except that it renews a grant that was handed over and not renewed since. A
// resumed lock cannot be released with MarkDone.
func (l *Lock) Detach() (Grant, error) {
	if l.Err() == nil && l.h.Lock().UnderSession() { // if the handle has ended, the code below returns the reason
		return Grant{}, l.c.cfg.unsupported("Detach together with SharedLease")
	}
	d, err := l.h.Detach()
	return Grant(d), err
}

// Resume resumes the grant that Lock.Detach returned, by one renewal. The error is ErrLost
// if the key was taken over, or if the grant was resumed elsewhere. After ErrUnknownOutcome call
// Resume again, on the same client.
func (c *Client) Resume(ctx context.Context, g Grant, opts ...RenewOption) (*Lock, error) {
	ch := lease.Changes{Lease: g.Lease}
	if err := apply(c, "resume", g.Key, opts, RenewOption.toRenew, &ch); err != nil {
		return nil, err
	}
	var err error
	if g.Key, err = c.checkGrant(g, ch); err != nil {
		return nil, err
	}
	want := &request{Want: acquire.Want{Key: g.Key, Timing: c.timing.Scaled(ch.Lease), Changes: ch.Record, Delete: c.env.DeletesByDefault}}
	h, err := c.holds.Resume(ctx, hold.Detached(g), want.wanted(c))
	if err != nil {
		return nil, err
	}
	return lockOf(h.First()), nil
}

func (c *Client) checkGrant(g Grant, ch lease.Changes) (Key, error) {
	var missing []string
	for _, field := range []struct {
		name string
		lost bool
	}{
		{"table", g.Table == ""},
		{"key", g.Key.Partition == ""},
		{"owner", g.Owner == "" && c.env.Proto.Owned()},
		{"token", g.Token == 0},
		{"id", g.ID == ""},
		{"versions", len(g.Versions) == 0},
		{"lease", ch.Lease == 0},
	} {
		if field.lost {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return g.Key, c.env.Errorf("resume", g.Key, "the grant lacks its %s: pass what Lock.Detach returned, or its JSON read back",
			strings.Join(missing, ", "))
	}
	if g.Table != c.cfg.Table {
		return g.Key, c.env.Errorf("resume", g.Key, "the grant is of table %q: use a client of that", g.Table)
	}
	key, err := c.checkKey("resume", g.Key)
	if err != nil {
		return key, err
	}
	return key, cmp.Or(c.checkLease("resume", key, ch.Lease), c.checkChanges("resume", key, ch.Record))
}
