package say

import "io"

// IsClosed is false: a write to a standard stream that is closed fails.
func IsClosed(io.Writer) bool { return false }
