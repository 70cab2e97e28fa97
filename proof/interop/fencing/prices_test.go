//go:build linux

package fencing

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/postgres"
)

func TestPostgresRejectsStaleToken(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	lab.OK(t, SetPrice(t.Context(), pool, stale, 1, 100)) // the database accepts this stale write, because the later holder has not written yet
	lab.OK(t, SetPrice(t.Context(), pool, current, 1, 200))
	lost(t, SetPrice(t.Context(), pool, stale, 1, 101))
	isPriced(t, pool, 1, 200, current)
	lab.OK(t, SetPrice(t.Context(), pool, current, 1, 201)) // the current holder may write again
	isPriced(t, pool, 1, 201, current)
	lost(t, SetPrice(t.Context(), pool, current, 2, 1)) // the row for item 2 does not exist yet
}

func TestPostgresRejectsStaleTokenInInsert(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	lab.OK(t, PutPrice(t.Context(), pool, stale, 2, 100))
	isPriced(t, pool, 2, 100, stale)
	lab.OK(t, PutPrice(t.Context(), pool, current, 2, 200))
	lost(t, PutPrice(t.Context(), pool, stale, 2, 101))
	isPriced(t, pool, 2, 200, current)
	lab.OK(t, PutPrice(t.Context(), pool, current, 2, 201))
	isPriced(t, pool, 2, 201, current)
}

// The stale write begins while the row still contains the stale token. It waits for the row
// lock until the next holder's transaction commits. Then it must compare its token with the
// new one.
func TestPostgresComparesTokenAfterWaitingForRowLock(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	lab.OK(t, SetPrice(t.Context(), pool, stale, 1, 100))

	tx := lab.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }() // ends the transaction if the test fails; otherwise closing the pool would wait for it
	lab.Must(tx.Exec(t.Context(), `UPDATE prices SET price = 200, fence = $1 WHERE id = 1`, current.Token()))(t)

	late := make(chan error, 1)
	go func() { late <- SetPrice(t.Context(), pool, stale, 1, 101) }()
	waits := func() (n int) {
		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE prices%'`
		lab.OK(t, pool.QueryRow(t.Context(), waiting).Scan(&n))
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
	lab.OK(t, tx.Commit(t.Context()))
	lost(t, <-late)
	isPriced(t, pool, 1, 200, current)
}

// prices returns a database with one row. Its price is 10, and no lock holder has written
// it.
func prices(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := postgres.Run(t)
	for _, statement := range []string{Prices, `INSERT INTO prices (id, price) VALUES (1, 10)`} {
		lab.Must(pool.Exec(t.Context(), statement))(t)
	}
	return pool
}

func isPriced(t *testing.T, pool *pgxpool.Pool, id, want int64, by *leasehold.Lock) {
	t.Helper()
	var price, fence int64
	lab.OK(t, pool.QueryRow(t.Context(), `SELECT price, fence FROM prices WHERE id = $1`, id).Scan(&price, &fence))
	if price != want || fence != by.Token() {
		t.Errorf("price %d is %d by token %d, want %d by %d", id, price, fence, want, by.Token())
	}
}

func lost(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("error %v, want ErrLost", err)
	}
}
