package adapters

import (
	"context"

	"github.com/caddyserver/certmagic"

	"github.com/leasehold-go/leasehold/contrib/byname"
)

// Storage stores certificates in another storage of certmagic, and locks with leasehold.
// The embedded Locker has the methods TryLock and RenewLockLease.
type Storage struct {
	certmagic.Storage
	*byname.Locker
}

// Lock calls Locker.Lock. Without this method, Lock would be ambiguous: both embedded
// types have one.
func (s Storage) Lock(ctx context.Context, name string) error { return s.Locker.Lock(ctx, name) }

// Unlock calls Locker.Unlock. Both embedded types have an Unlock, too.
func (s Storage) Unlock(ctx context.Context, name string) error { return s.Locker.Unlock(ctx, name) }

// Storage implements these interfaces of certmagic.
var (
	_ certmagic.Storage          = Storage{}
	_ certmagic.TryLocker        = Storage{}
	_ certmagic.LockLeaseRenewer = Storage{}
)
