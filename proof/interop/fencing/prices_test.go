//go:build linux

package fencing

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/proof/interop/postgres"
)

func TestPostgresRejectsStaleToken(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	must(t, SetPrice(t.Context(), pool, stale, 1, 100)) // accepted, because the later holder has not written yet
	must(t, SetPrice(t.Context(), pool, current, 1, 200))
	lost(t, SetPrice(t.Context(), pool, stale, 1, 101))
	isPriced(t, pool, 1, 200, current)
	must(t, SetPrice(t.Context(), pool, current, 1, 201)) // a holder may write more than once
	isPriced(t, pool, 1, 201, current)
	lost(t, SetPrice(t.Context(), pool, current, 2, 1)) // the row does not exist
}

func TestPostgresRejectsStaleTokenInInsert(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	must(t, PutPrice(t.Context(), pool, stale, 2, 100))
	isPriced(t, pool, 2, 100, stale)
	must(t, PutPrice(t.Context(), pool, current, 2, 200))
	lost(t, PutPrice(t.Context(), pool, stale, 2, 101))
	isPriced(t, pool, 2, 200, current)
	must(t, PutPrice(t.Context(), pool, current, 2, 201))
	isPriced(t, pool, 2, 201, current)
}

// The stale write begins when the row still has the stale token. It waits for the row until
// the next holder's transaction ends.
func TestPostgresComparesTokenAfterWaitingForRowLock(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	must(t, SetPrice(t.Context(), pool, stale, 1, 100))

	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }() // otherwise closing the pool would wait for the transaction
	_, err = tx.Exec(t.Context(), `UPDATE prices SET price = 200, fence = $1 WHERE id = 1`, current.Token())
	must(t, err)

	late := make(chan error, 1)
	go func() { late <- SetPrice(t.Context(), pool, stale, 1, 101) }()
	waits := func() (n int) {
		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE prices%'`
		must(t, pool.QueryRow(t.Context(), waiting).Scan(&n))
		return n
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for waits() == 0 {
		select {
		case err := <-late:
			t.Fatalf("the stale write did not wait for the row: %v", err)
		case <-again.C:
		}
	}
	must(t, tx.Commit(t.Context()))
	lost(t, <-late)
	isPriced(t, pool, 1, 200, current)
}

// prices returns a database with one price, 10, which was not written under a lock.
func prices(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := postgres.Run(t)
	for _, statement := range []string{Prices, `INSERT INTO prices (id, price) VALUES (1, 10)`} {
		_, err := pool.Exec(t.Context(), statement)
		must(t, err)
	}
	return pool
}

func isPriced(t *testing.T, pool *pgxpool.Pool, id, want int64, by *leasehold.Lock) {
	t.Helper()
	var price, fence int64
	must(t, pool.QueryRow(t.Context(), `SELECT price, fence FROM prices WHERE id = $1`, id).Scan(&price, &fence))
	if price != want || fence != by.Token() {
		t.Errorf("price %d is %d by token %d, want %d by %d", id, price, fence, want, by.Token())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lost(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
}
