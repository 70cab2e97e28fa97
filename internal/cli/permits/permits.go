// Package permits tells semaphores from locks: under a key is either the record of a lock
// or the number of permits of a semaphore, and who takes one for the other gets it with
// the error. It reads semaphores as they are shown, and which locks are permits.
package permits

import (
	"errors"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// In returns the number of permits if err says of a key that its record is no lock,
// because it is a semaphore's.
func In(proto protocol.Protocol, err error) (n int, is bool) {
	var bad *leasehold.RecordError
	rows := protocol.PermitRowsOf(proto)
	if rows == nil || !errors.As(err, &bad) {
		return 0, false
	}
	p, err := rows.Decode(bad.Item)
	return p.N, err == nil
}

// LockIn returns the lock's record if err says of a key that its record is no
// semaphore's, because it is a lock's.
func LockIn(proto protocol.Protocol, err error) (leasehold.Record, bool) {
	var bad *leasehold.RecordError
	if !errors.As(err, &bad) {
		return leasehold.Record{}, false
	}
	r, err := proto.Decode(bad.Item)
	return leasehold.Record{Key: bad.Key, Owner: r.Owner, Released: r.Released, Token: r.Token}, err == nil
}

// HeldNow says whether a lock is held, and by whom.
func HeldNow(r leasehold.Record) string {
	if r.Released {
		return "free"
	}
	return "held by " + wording.Owner(r.Owner)
}

// Count is a number of permits in a sentence.
func Count(n int) string { return wording.Count(n, "permit", "permits") }
