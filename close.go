package leasehold

import (
	"context"
)

// Close ends the client. Calls that wait for a key return ErrClosed, and so do later
// calls. Every lock's context ends with the cause ErrClosed. Each lock is released
// once no function in Do runs under it: those with the least trust left go first, and
// at most Config.RenewConcurrency at a time. Errors are joined. Once ctx has ended and
// Config.ReleaseGrace has passed, locks that are still held are left to their leases.
// A second Close waits for the first until its own ctx ends, and returns the same.
func (c *Client) Close(ctx context.Context) error { return c.holds.Close(ctx) }
