package recipe

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Permits is what semaphores need of a client.
type Permits interface {
	// PermitKeys are the keys of the first n permits under key, ordinary locks.
	// The error says why there can be none.
	PermitKeys(key string, n int) ([]protocol.Key, error)

	// PermitOptions reads opts, a []leasehold.AcquireOption. The error says
	// which of them permits do not have.
	PermitOptions(opts any) (PermitOptions, error)

	// SharePermit returns another handle on one of the permits that ctx holds,
	// a *leasehold.Lock; nil if it holds none. The error says what of opts, a
	// []leasehold.AcquireOption, that permit is not.
	SharePermit(ctx context.Context, keys []protocol.Key, opts any) (lock any, err error)

	// CountsPermits reports whether the table says how many permits there are.
	// What follows is of use only then.
	CountsPermits() bool

	// ReadPermits reads how many permits there are until it is answered, refused
	// or ctx ends. The zero Permits: nobody has stored it yet.
	ReadPermits(ctx context.Context, key string) (protocol.Permits, error)

	// CreatePermits stores n unless a number is there already, and returns what
	// is there then. created: by this call, though another may have changed it
	// since. When ctx ends a request may be under way yet; with manual it is
	// waited for, within the release grace.
	CreatePermits(ctx context.Context, key string, n int, manual bool) (p protocol.Permits, created bool, err error)

	// ResizePermits stores n. leasehold.ErrUnknownOutcome if ctx ended without an
	// answer.
	ResizePermits(ctx context.Context, key string, n int) (protocol.Permits, error)

	// HeldPermits reads those of keys that are held, a []leasehold.Record. A
	// record that does not read is an error beside the others.
	HeldPermits(ctx context.Context, keys []protocol.Key) (records any, err error)

	// GaveUp tells of a call that began then and ends without a grant.
	GaveUp(ctx context.Context, key string, began time.Time, err error)

	// RereadPermits is about how often a waiter reads how many permits there are.
	RereadPermits() time.Duration

	// Table is the lock table's name.
	Table() string
}

// ErrResized ends the wait for permits of which there are more or fewer by now:
// it begins anew.
var ErrResized = errors.New("semaphore: resized")

// PermitOptions are the options of acquiring that semaphores act upon.
type PermitOptions struct {
	NoWait    bool
	Reentrant bool
	Manual    bool // nothing may be left in the background
}
