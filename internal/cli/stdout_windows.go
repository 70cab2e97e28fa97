package cli

import "io"

// isClosed is false: a write to a standard stream that is closed fails.
func isClosed(io.Writer) bool { return false }
