//go:build linux

package peers

import "errors"

// Kinds of a driver's errors.
var (
	ErrHeld        = errors.New("peers: held by another")
	ErrLost        = errors.New("peers: lock lost")
	ErrUnsupported = errors.New("peers: the library cannot do this")
	ErrFailed      = errors.New("peers: the library failed")

	// ErrEnded is returned if the driver has ended, so that no reply will come.
	ErrEnded = errors.New("peers: driver ended")
	// ErrNotInstallable is returned for a peer that only an operator can install.
	ErrNotInstallable = errors.New("peers: not installable")
)

// Error is a driver's refusal. It matches one of ErrHeld, ErrLost, ErrUnsupported and
// ErrFailed.
type Error struct {
	Peer    string `json:"-"`
	Do      string `json:"-"`
	Kind    string `json:"kind"`    // held, lost, unsupported or failed
	Message string `json:"message"` // the library's own
}

func (e *Error) Error() string {
	return "peers: " + e.Peer + ": " + e.Do + ": " + e.Kind + ": " + e.Message
}

// Is reports whether target is e's kind.
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
