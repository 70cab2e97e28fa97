package hold

import "time"

// Expires is when TTL may delete a record that is released now. Never, if it may contain
// the mark of what was done, as that would be done again; nor with data of the caller's,
// unless Retention says when.
func (c *Client) Expires(data, mark bool) time.Time {
	retention := c.Retention
	if retention == 0 {
		retention = defaultRetention
		if data {
			retention = -1
		}
	}
	if retention < 0 || mark {
		return time.Time{}
	}
	return c.Wall().Add(retention)
}

// defaultRetention is how long a record without anything of the caller's is kept.
const defaultRetention = 7 * 24 * time.Hour

// keepDead is how long the row of a dead session is kept before TTL may delete it,
// whatever Retention: it contains nothing of the caller's, and proves the death to
// requests that are late. Those are late by minutes; a week also covers a clock that is
// days slow, by which TTL would delete too early.
const keepDead = 7 * 24 * time.Hour

// DeadExpires is when TTL may delete the row of a session that is marked dead now.
func (c *Client) DeadExpires() time.Time { return c.Wall().Add(keepDead) }
