package leasehold

import (
	"cmp"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// observe records that a reply has shown item, nil for none, as the record of key at now.
// A nil Record: the key is free.
func (c *Client) observe(key Key, item protocol.Item, now decide.Instant) (*Record, observed.Version, error) {
	if item == nil {
		c.observed.Forget(key)
		return nil, observed.Version{}, nil
	}
	r, err := c.decode(key, item)
	if err != nil {
		return nil, observed.Version{}, err
	}
	if r.Released {
		c.observed.Forget(key)
		return nil, observed.Version{}, nil
	}
	return &r, c.observed.Note(key, versionOf(r, now)), nil
}

// deadAt is when the holder of r is dead, if it does not renew. A reply has shown r at
// now, when the wall clock showed wall; its version v was first observed at v.Since.
func (c *Client) deadAt(r Record, v observed.Version, now decide.Instant, wall time.Time) time.Duration {
	if c.caps.Expiry == layout.WallClock {
		return decide.DeadByClock(r.ExpiresAt, c.timing.Skew, c.caps.LeaseStep, wall, now.Mono)
	}
	return decide.DeadByVersion(v.Since.Mono, r.Lease)
}

// entryKey names one entry of a read/write lock: each has a version of its own.
type entryKey struct {
	Key
	grant string
}

func entryKeyOf(r Record) entryKey { return entryKey{r.Key, r.Grant} }

// observeEntry is observe for one entry of a read/write lock.
func (c *Client) observeEntry(r Record, now decide.Instant) observed.Version {
	return c.entries.Note(entryKeyOf(r), versionOf(r, now))
}

// versionOf is the version of a record that a reply has shown at now.
func versionOf(r Record, now decide.Instant) observed.Version {
	return observed.Version{ID: r.Version, Grant: grantIDOf(r), Lease: r.Lease, Since: now, Wall: time.Now().Round(0)}
}

// grantIDOf identifies the grant. A foreign holder has only its owner's name, which may
// be empty. One that never renews also has a version that stays.
func grantIDOf(r Record) string {
	if r.Lease > 0 {
		return cmp.Or(r.Grant, r.Owner)
	}
	return cmp.Or(r.Grant, r.Owner, r.Version)
}
