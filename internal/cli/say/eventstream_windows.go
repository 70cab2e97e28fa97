package say

import (
	"io"
	"os"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// openInherited fails: a Windows process has no numbered file descriptors.
func openInherited(number string) (*os.File, error) {
	return nil, failure.Misusef("--events %s: Windows has no file descriptors: name a file", number)
}

// IsClosed always returns false. On Windows it is not needed, since a write to a closed
// standard stream fails.
func IsClosed(io.Writer) bool { return false }
