package leasehold

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Grant is a detached lock as plain data, to be handed to another process. As
// JSON: {"table","key","sortKey","owner","token","grant","versions",
// "leaseMs","trustedUntil"}. Whoever has it can resume the lock, once.
type Grant struct {
	Table        string
	Key          Key
	Owner        string
	Token        int64
	ID           string   // of the grant
	Versions     []string // that the record may show: the last one confirmed, and any unanswered
	Lease        time.Duration
	TrustedUntil time.Time // by the wall clock of the host that detached it; for people
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
	until, err := parseTime(in.TrustedUntil)
	if err != nil {
		return fmt.Errorf("leasehold: grant of %q: trustedUntil: %w", in.Key, err)
	}
	lease, err := leaseOfMs(in.LeaseMs)
	if err != nil {
		return fmt.Errorf("leasehold: grant of %q: %w", in.Key, err)
	}
	*g = Grant{
		Table: in.Table, Key: Key{in.Key, in.SortKey}, Owner: in.Owner, Token: in.Token, ID: in.Grant,
		Versions: in.Versions, Lease: lease, TrustedUntil: until,
	}
	return nil
}

// leaseOfMs is a lease that was written as milliseconds. One that is too long for a
// Duration would otherwise read as another, and perhaps as a short one.
func leaseOfMs(ms int64) (time.Duration, error) {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, fmt.Errorf("leaseMs is %d: it must be from 0 to %d", ms, math.MaxInt64/int64(time.Millisecond))
	}
	return decide.Times(time.Millisecond, ms), nil
}

// Detach ends this handle without releasing the key: renewals stop, and the
// context ends with ErrDetached. Client.Resume resumes the grant, in any process,
// before its lease expires: three seconds of a key that was handed over in line
// (Config.Line) and has not been renewed since. Nothing is sent.
func (l *Lock) Detach() (Grant, error) {
	switch h := l.h.Lock(); {
	case l.Err() != nil: // which the handle says
	case h.UnderSession():
		return Grant{}, l.c.cfg.unsupported("Detach together with SharedLease")
	case h.Want().Mode != protocol.ModePlain:
		return Grant{}, l.c.cfg.unsupported("Detach of a read/write lock")
	}
	d, err := l.h.Detach()
	if err != nil {
		return Grant{}, err
	}
	return Grant{
		Table: l.c.cfg.Table, Key: Key(d.Key), Owner: d.Owner, Token: d.Token, ID: d.Grant,
		Versions: d.Versions, Lease: d.Lease, TrustedUntil: d.TrustedUntil,
	}, nil
}
