package byname

import (
	"context"
	"database/sql"
)

// Database is one lock, of one name, for those who lock before they change a database:
// lock.Locker and lock.SessionLocker of goose. It asks nothing of the database, so it
// fits those that have no lock of their own.
type Database struct {
	names *Locker
	name  string
}

// ForDatabase returns the lock of that name, for goose.WithLocker or
// goose.WithSessionLocker: name it after the database. Both ways exclude each other.
func (l *Locker) ForDatabase(name string) *Database { return &Database{l, name} }

// Lock is Locker.Lock. The database is not used.
func (d *Database) Lock(ctx context.Context, _ *sql.DB) error { return d.names.Lock(ctx, d.name) }

// Unlock is Locker.Unlock. The database is not used.
func (d *Database) Unlock(ctx context.Context, _ *sql.DB) error { return d.names.Unlock(ctx, d.name) }

// SessionLock is Locker.Lock. The connection is not used.
func (d *Database) SessionLock(ctx context.Context, _ *sql.Conn) error {
	return d.names.Lock(ctx, d.name)
}

// SessionUnlock is Locker.Unlock. The connection is not used.
func (d *Database) SessionUnlock(ctx context.Context, _ *sql.Conn) error {
	return d.names.Unlock(ctx, d.name)
}
