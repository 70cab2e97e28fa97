//go:build unix

package say

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// terminalSession names the terminal that a stream leads to, and this process's session
// there (setsid(2)), of this boot where that has a name (random(4)). Empty: it is no
// terminal.
func terminalSession(stream any) string {
	f, ok := stream.(*os.File)
	if !ok || !IsTerminal(f) {
		return ""
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return ""
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return fmt.Sprintf("%s/%d/%d", bytes.TrimSpace(boot), stat.Rdev, session)
}
