//go:build !linux

package process

// hasEnded reports whether CMD is known to have ended.
func (c *Child) hasEnded() bool {
	select {
	case <-c.Exited:
		return true
	default:
		return false
	}
}
