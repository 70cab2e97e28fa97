package leasehold

import "time"

// expires is when TTL may delete a record that is released now. Never, if it may
// contain something of the caller's, unless Config.Retention says when.
func (c *Client) expires(mayContainData bool) time.Time {
	retention := c.cfg.Retention
	if retention == 0 {
		retention = defaultRetention
		if mayContainData {
			retention = Forever
		}
	}
	if retention == Forever {
		return time.Time{}
	}
	return c.wall().Add(retention)
}

// keepDead is how long the row of a dead session is kept before TTL may delete it,
// whatever Config.Retention: it contains nothing of the caller's, and proves the death to
// requests that are late. Those are late by minutes; a week also covers a clock that is
// days slow, by which TTL would delete too early.
const keepDead = 7 * 24 * time.Hour

// deadExpires is when TTL may delete the row of a session that is marked dead now.
func (c *Client) deadExpires() time.Time { return c.wall().Add(keepDead) }

// leaveData reports whether something of the caller's is in r after the changes.
func (ch changes) leaveData(r Record) bool {
	if ch.Data != nil || r.Data != nil && !ch.SetData {
		return true
	}
	for name := range r.Attributes {
		if _, changed := ch.Attributes[name]; !changed {
			return true
		}
	}
	for _, v := range ch.Attributes {
		if v != nil {
			return true
		}
	}
	return false
}
