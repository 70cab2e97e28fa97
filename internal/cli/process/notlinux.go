//go:build !linux

package process

import "os"

func adoptOrphans(chan<- os.Signal) {}

func reapOrphan(int) {}

// hasEnded reports whether this process already knows that CMD has ended.
func (c *Child) hasEnded() bool {
	select {
	case <-c.Exited:
		return true
	default:
		return false
	}
}

// ThisProgram returns the path of this program.
func ThisProgram() (string, error) { return os.Executable() }
