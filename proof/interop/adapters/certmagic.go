package adapters

import (
	"context"

	"github.com/caddyserver/certmagic"

	"github.com/leasehold-go/leasehold/contrib/byname"
)

// Storage keeps certificates in another certmagic storage, and locks with leasehold. Locker
// provides TryLock and RenewLockLease.
type Storage struct {
	certmagic.Storage
	*byname.Locker
}

// Lock calls the Lock method of Locker, because both embedded types have one.
func (s Storage) Lock(ctx context.Context, name string) error { return s.Locker.Lock(ctx, name) }

// Unlock calls the Unlock method of Locker, because both embedded types have one.
func (s Storage) Unlock(ctx context.Context, name string) error { return s.Locker.Unlock(ctx, name) }

// Storage implements the interfaces of certmagic's storage.
var (
	_ certmagic.Storage          = Storage{}
	_ certmagic.TryLocker        = Storage{}
	_ certmagic.LockLeaseRenewer = Storage{}
)
