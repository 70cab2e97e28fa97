package cli

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// heartbeat is what a holder renews: the version of its record, or of its session
// row. A holder whose version stays the same for lease is dead.
type heartbeat struct {
	version string
	lease   time.Duration
	dead    bool // the session has ended
	shared  bool // it is that of a session
}

// missingRowLease is how long a session's row must be missing before a client
// with the default lease takes over its locks.
const missingRowLease = 20 * time.Second

// noSessionRow stands for the version of a session's row that is missing.
const noSessionRow = "none"

// sessionHeartbeat returns the heartbeat of a holder that renews a session. row is
// its session's; nil: it was deleted, by somebody or by TTL long after it expired.
func sessionHeartbeat(proto protocol.Sharing, row protocol.Item) (heartbeat, error) {
	if row == nil {
		return heartbeat{version: noSessionRow, lease: missingRowLease, shared: true}, nil
	}
	r, err := proto.Session().Decode(row)
	if err != nil {
		return heartbeat{}, err
	}
	return heartbeat{version: r.Version, lease: r.Lease, dead: r.Released, shared: true}, nil
}
