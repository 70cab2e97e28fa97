package adapters

import (
	"context"

	"github.com/caddyserver/certmagic"

	"github.com/leasehold-go/leasehold/contrib/byname"
)

// Storage is a certmagic storage that stores certificates in the embedded storage, and uses
// leasehold for its locks. The embedded Locker also provides the methods TryLock and
// RenewLockLease.
type Storage struct {
	certmagic.Storage
	*byname.Locker
}

// Lock calls Locker.Lock. Without this method, Lock would be ambiguous, because both embedded
// types have a method Lock.
func (s Storage) Lock(ctx context.Context, name string) error { return s.Locker.Lock(ctx, name) }

// Unlock calls Locker.Unlock. It is needed for the same reason as Lock.
func (s Storage) Unlock(ctx context.Context, name string) error { return s.Locker.Unlock(ctx, name) }

// Storage implements these interfaces of certmagic.
var (
	_ certmagic.Storage          = Storage{}
	_ certmagic.TryLocker        = Storage{}
	_ certmagic.LockLeaseRenewer = Storage{}
)
