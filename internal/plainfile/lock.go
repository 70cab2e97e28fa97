package plainfile

import "errors"

// ErrLocked is the error of a file that is not unlocked in time.
var ErrLocked = errors.New("another process keeps it locked")
