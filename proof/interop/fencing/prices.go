package fencing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold-go/leasehold"
)

// Prices creates the table that SetPrice and PutPrice write to. Each row contains the
// greatest token with which it was written. Never delete a row, because that would delete
// its token. Mark the row as deleted in another column.
const Prices = `CREATE TABLE prices (
	id    bigint PRIMARY KEY,
	price bigint NOT NULL,
	fence bigint NOT NULL DEFAULT 0
)`

// SetPrice changes a price under lock. ErrLost means that a later holder has written the row, or
// that the row does not exist. Above the isolation level READ COMMITTED, a concurrent write by a
// later holder causes a serialization failure instead.
func SetPrice(ctx context.Context, pool *pgxpool.Pool, lock *leasehold.Lock, id, price int64) error {
	const update = `UPDATE prices SET price = $2, fence = $3 WHERE id = $1 AND fence <= $3`
	tag, err := pool.Exec(ctx, update, id, price, lock.Token())
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("price %d is gone, or a later holder of %s has written it: %w", id, lock.Key(), leasehold.ErrLost)
	}
	return nil
}

// PutPrice is like SetPrice, but inserts the row if it does not exist.
func PutPrice(ctx context.Context, pool *pgxpool.Pool, lock *leasehold.Lock, id, price int64) error {
	const upsert = `INSERT INTO prices (id, price, fence) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET price = excluded.price, fence = excluded.fence
		WHERE prices.fence <= excluded.fence`
	tag, err := pool.Exec(ctx, upsert, id, price, lock.Token())
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("a later holder of %s has written price %d: %w", lock.Key(), id, leasehold.ErrLost)
	}
	return nil
}
