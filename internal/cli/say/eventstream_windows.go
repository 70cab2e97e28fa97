package say

import (
	"io"
	"os"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// openInherited returns an error, because a Windows process has no numbered file
// descriptors.
func openInherited(number string) (*os.File, error) {
	return nil, failure.Misusef("--events %s: Windows has no file descriptors: name a file", number)
}

// IsClosed returns false: on Windows, a write to a closed standard stream fails, so no
// check is needed.
func IsClosed(io.Writer) bool { return false }
