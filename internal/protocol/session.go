package protocol

import "time"

// DefaultLease is the lease of a client whose configuration names none.
const DefaultLease = 20 * time.Second

// noRow stands for the version of a row that is not there.
const noRow = "none"

// NoRow stands for the row of a session that is not there: TTL has deleted it long after
// the session's death, or somebody by hand. Then its locks may still be trusted for up to
// a lease. How long that is, only the observer's own configuration can tell.
func NoRow(lease time.Duration) Record { return Record{Version: noRow, Lease: lease} }

// IsNoRow reports whether a version is that of NoRow.
func IsNoRow(version string) bool { return version == noRow }

// IsSessionKey reports whether a key is that of a session's row.
func IsSessionKey(p Protocol, k Key) bool {
	sharing, ok := p.(Sharing)
	return ok && sharing.IsSessionKey(k)
}
