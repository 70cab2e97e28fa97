package seek

import (
	"context"
	"slices"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// IsUnsettled reports whether version is an attempt of this client for key that was
// given up before its effect was known. No client treats it as held: if it holds the
// key, this client takes it over at once.
func (k *Keys) IsUnsettled(key protocol.Key, version string) bool {
	return k.Unsettled.Has(key, version, k.Now().Mono)
}

// leaveUnsettled gives up attempts to acquire a key whose effect is not known, and
// ensures that they do not block the key for others.
func (c *Client) leaveUnsettled(key protocol.Key, versions []string) {
	if len(versions) == 0 {
		return
	}
	c.Unsettled.Add(key, versions, c.Now().Mono)
	c.keeper.CheckSoon(key)
}

// freeUnsettled frees the key if one of the attempts holds it. It tries once. An attempt
// that is applied later does not block this client, and others for one lease.
func (c *Client) freeUnsettled(values context.Context, want *Want, tried []Attempt) {
	for len(tried) > 0 {
		owner := tried[0].Owner // another one if a session ended meanwhile
		n := slices.IndexFunc(tried, func(a Attempt) bool { return a.Owner != owner })
		if n < 0 {
			n = len(tried)
		}
		versions := attempts.Versions(tried[:n])
		tried = tried[n:]
		hold := protocol.Hold{Key: want.Key, Owner: owner, Grants: versions, Versions: versions}
		c.write(values, c.Freeing(c.Proto, hold, want.Delete))
	}
}

// Freeing returns the write that frees the key of a grant that this client does not hold:
// it does not know what the record contains.
func (k *Keys) Freeing(proto protocol.Protocol, hold protocol.Hold, deletes bool) *protocol.Write {
	if deletes {
		return proto.Delete(hold)
	}
	return proto.Release(hold, protocol.Release{Version: protocol.NewVersion(), Now: k.Wall(), Expires: k.Expires(true, k.Native != nil)})
}
