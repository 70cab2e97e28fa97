//go:build !linux

package process

import "os"

func adoptOrphans(chan<- os.Signal) {}

func reapOrphan(int) {}

// hasEnded reports whether this process has noticed the end of CMD.
func (c *Child) hasEnded() bool {
	select {
	case <-c.Exited:
		return true
	default:
		return false
	}
}

// ThisProgram returns the path of the running executable.
func ThisProgram() (string, error) { return os.Executable() }
