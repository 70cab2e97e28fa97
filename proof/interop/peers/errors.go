//go:build linux

package peers

import "errors"

// Kinds of errors that a driver returns.
var (
	ErrHeld        = errors.New("peers: held by another")
	ErrLost        = errors.New("peers: lock lost")
	ErrUnsupported = errors.New("peers: the library cannot do this")
	ErrFailed      = errors.New("peers: the library failed")

	// ErrEnded is returned if the driver ends before it replies.
	ErrEnded = errors.New("peers: driver ended")
	// ErrNotInstallable is returned for a peer that this package cannot install by itself.
	ErrNotInstallable = errors.New("peers: not installable")
)

// Error is an error that a driver returned. It matches ErrHeld, ErrLost, ErrUnsupported or
// ErrFailed.
type Error struct {
	Peer    string `json:"-"`
	Do      string `json:"-"`
	Kind    string `json:"kind"`    // kind of the error: held, lost, unsupported or failed
	Message string `json:"message"` // error message of the lock library
}

func (e *Error) Error() string {
	return "peers: " + e.Peer + ": " + e.Do + ": " + e.Kind + ": " + e.Message
}

// Is reports whether target is the error variable for e.Kind, such as ErrHeld for "held".
func (e *Error) Is(target error) bool {
	switch e.Kind {
	case "held":
		return target == ErrHeld
	case "lost":
		return target == ErrLost
	case "unsupported":
		return target == ErrUnsupported
	}
	return target == ErrFailed
}
