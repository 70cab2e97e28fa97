package say

import "io"

// IsClosed returns false: on Windows, a write to a closed standard stream fails.
func IsClosed(io.Writer) bool { return false }
