package byname

import (
	"context"
	"database/sql"
)

// Database is a lock with a fixed name, for programs that acquire a lock before they change
// a database. It implements lock.Locker and lock.SessionLocker of goose. It sends nothing to
// the database, so it also works for databases that have no locks of their own.
type Database struct {
	names *Locker
	name  string
}

// ForDatabase returns the lock with the given name: choose the database's name. Pass the lock to
// goose.WithLocker or goose.WithSessionLocker. Both options use the same lock, so processes that
// use different options exclude each other, too.
func (l *Locker) ForDatabase(name string) *Database { return &Database{l, name} }

// Lock calls Locker.Lock with the lock's name.
func (d *Database) Lock(ctx context.Context, _ *sql.DB) error { return d.names.Lock(ctx, d.name) }

// Unlock calls Locker.Unlock with the lock's name.
func (d *Database) Unlock(ctx context.Context, _ *sql.DB) error { return d.names.Unlock(ctx, d.name) }

// SessionLock calls Locker.Lock with the lock's name.
func (d *Database) SessionLock(ctx context.Context, _ *sql.Conn) error {
	return d.names.Lock(ctx, d.name)
}

// SessionUnlock calls Locker.Unlock with the lock's name.
func (d *Database) SessionUnlock(ctx context.Context, _ *sql.Conn) error {
	return d.names.Unlock(ctx, d.name)
}
