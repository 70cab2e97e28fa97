package leasehold

// RememberAtMost has c remember no more than n keys, or holders of read/write
// locks, that nobody watches.
func RememberAtMost(c *Client, n int) { c.seen.most, c.entries.most = n, n }

// SameClocks lets c read the clocks of another client, as a process of the same
// machine would.
func SameClocks(c, of *Client) { c.now = of.now }

// Remembered is the number of keys that c remembers, or watches.
func Remembered(c *Client) int {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	return max(len(c.seen.byKey), len(c.seen.watched)+c.seen.idle.Len())
}
