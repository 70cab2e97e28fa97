//go:build linux

package fencing

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/proof/interop/postgres"
	"github.com/leasehold-go/leasehold/table"
)

func TestConditionalPutToS3RejectsStaleToken(t *testing.T) {
	server := newStore(t)
	db := server.client(http.DefaultTransport)
	stale, current := twoHolders(t)
	lab.OK(t, save(t, db, stale, "a")) // S3 accepts this stale write, because the later holder has not written yet
	server.has(t, stale, "a")
	lab.OK(t, save(t, db, current, "b"))
	lab.WantErr(t, "write of the stale holder", save(t, db, stale, "c"), leasehold.ErrLost)
	server.has(t, current, "b")
	lab.OK(t, save(t, db, current, "d")) // the current holder may write again
	server.has(t, current, "d")
}

// The stale holder reads the object, and the later holder writes it. Then S3 must reject the stale
// holder's write, because the ETag has changed. The content includes the token. Otherwise equal
// pages would have equal ETags, because S3 computes an ETag from the content alone.
func TestS3RejectsWriteIfObjectChangedSinceRead(t *testing.T) {
	type variant struct {
		before string // page that the stale holder has written; empty if the object does not exist yet
		newer  string // page that the later holder writes
	}
	lab.Variants(t, map[string]variant{
		"object of the stale holder": {"a", "b"},
		"no object":                  {"", "b"},
		"equal content":              {"a", "a"},
	}, func(t *testing.T, c variant) {
		server := newStore(t)
		db := server.client(http.DefaultTransport)
		stale, current := twoHolders(t)
		if c.before != "" {
			lab.OK(t, save(t, db, stale, c.before))
		}
		late := server.client(&between{next: func() { lab.OK(t, save(t, db, current, c.newer)) }})
		var refusal smithy.APIError
		if err := save(t, late, stale, "c"); !errors.As(err, &refusal) || refusal.ErrorCode() != "PreconditionFailed" {
			t.Errorf("error %v, want PreconditionFailed", err)
		}
		server.has(t, current, c.newer)
		// This call reads the object again, and finds the later holder's token.
		lab.WantErr(t, "write of the stale holder", save(t, late, stale, "c"), leasehold.ErrLost)
		server.has(t, current, c.newer)
	})
}

func TestSaveIndexRejectsS3ObjectWithoutToken(t *testing.T) {
	server := newStore(t)
	db := server.client(http.DefaultTransport)
	_, current := twoHolders(t)
	lab.Must(db.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String("state"), Key: aws.String("index.json"), Body: strings.NewReader(`{"pages":["a"]}`),
	}))(t)
	lab.WantText(t, "save", save(t, db, current, "b"), "without a token")
	index, _ := server.index(t)
	lab.Want(t, "pages of the object", index.Pages, []string{"a"})
}

// store is a server of the S3 API. It has one bucket, named state.
type store struct{ endpoint string }

func newStore(t *testing.T) store {
	t.Helper()
	server := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
	t.Cleanup(server.Close)
	s := store{endpoint: server.URL}
	lab.Must(s.client(http.DefaultTransport).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("state")}))(t)
	return s
}

func (s store) client(transport http.RoundTripper) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.endpoint),
		UsePathStyle: true,
		Region:       "local",
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

func (s store) index(t *testing.T) (index Index, fence string) {
	t.Helper()
	object := lab.Must(s.client(http.DefaultTransport).GetObject(t.Context(), &s3.GetObjectInput{
		Bucket: aws.String("state"), Key: aws.String("index.json"),
	}))(t)
	defer object.Body.Close()
	body := lab.Must(io.ReadAll(object.Body))(t)
	lab.OK(t, json.Unmarshal(body, &index))
	return index, object.Metadata["fence"]
}

func (s store) has(t *testing.T, by *leasehold.Lock, page string) {
	t.Helper()
	index, fence := s.index(t)
	token := strconv.FormatInt(by.Token(), 10)
	if !slices.Equal(index.Pages, []string{page}) || index.Fence != by.Token() || fence != token {
		t.Errorf("the object has pages %q and token %d (in the metadata %q), want %q and %s", index.Pages, index.Fence, fence, page, token)
	}
}

func save(t *testing.T, db *s3.Client, lock *leasehold.Lock, page string) error {
	t.Helper()
	return SaveIndex(t.Context(), db, lock, "state", "index.json", Index{Pages: []string{page}})
}

// The type "between" is an HTTP transport that calls the function "next" once, immediately before
// it sends the first write. At that time SaveIndex has already read the object.
type between struct {
	next func()
	once sync.Once
}

func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		b.once.Do(b.next)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestPostgresUpdateRejectsStaleToken(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	lab.OK(t, SetPrice(t.Context(), pool, stale, 1, 100)) // the database accepts this stale write, because the later holder has not written yet
	lab.OK(t, SetPrice(t.Context(), pool, current, 1, 200))
	lab.WantErr(t, "write of the stale holder", SetPrice(t.Context(), pool, stale, 1, 101), leasehold.ErrLost)
	isPriced(t, pool, 1, 200, current)
	lab.OK(t, SetPrice(t.Context(), pool, current, 1, 201)) // the current holder may write again
	isPriced(t, pool, 1, 201, current)
	lab.WantErr(t, "write to a row that does not exist", SetPrice(t.Context(), pool, current, 2, 1), leasehold.ErrLost)
}

func TestPostgresUpsertRejectsStaleToken(t *testing.T) {
	pool := prices(t)
	stale, current := twoHolders(t)
	lab.OK(t, PutPrice(t.Context(), pool, stale, 2, 100))
	isPriced(t, pool, 2, 100, stale)
	lab.OK(t, PutPrice(t.Context(), pool, current, 2, 200))
	lab.WantErr(t, "write of the stale holder", PutPrice(t.Context(), pool, stale, 2, 101), leasehold.ErrLost)
	isPriced(t, pool, 2, 200, current)
	lab.OK(t, PutPrice(t.Context(), pool, current, 2, 201))
	isPriced(t, pool, 2, 201, current)
}

// The next holder's transaction has written the row, but not committed. So the stale write waits
// for the row lock. After the commit, PostgreSQL must compare the stale token with the new token in
// the row.
func TestPostgresChecksTokenAfterWaitForRowLock(t *testing.T) {
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
	lab.WantErr(t, "write of the stale holder", <-late, leasehold.ErrLost)
	isPriced(t, pool, 1, 200, current)
}

// prices returns a database with one row. The price in the row is 10, and no lock holder has
// written the row.
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
		t.Errorf("price %d is %d with token %d, want %d with %d", id, price, fence, want, by.Token())
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoHolders returns two locks of the same key. The first lock was not renewed, so its lease
// has expired. Then another client took the key over, and holds the second lock.
func twoHolders(t *testing.T) (stale, current *leasehold.Lock) {
	t.Helper()
	engine := localdynamo.New()
	t.Cleanup(func() { engine.Close() })
	lab.OK(t, table.Create(t.Context(), engine.Client(), table.Spec{Name: "locks"}))
	hold := func(opts ...leasehold.AcquireOption) *leasehold.Lock {
		locks := lab.Must(leasehold.New(engine.Client(), leasehold.Config{
			Table: "locks", Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
		}))(t)
		t.Cleanup(func() { locks.Close(context.Background()) })
		return lab.Must(locks.Acquire(t.Context(), "k", opts...))(t)
	}
	stale = hold(leasehold.WithoutRenewal()) // the lock expires, as if the holder's process was suspended
	current = hold()
	if stale.Err() == nil || stale.Token() >= current.Token() {
		t.Fatalf("tokens %d and then %d; error of the first lock: %v", stale.Token(), current.Token(), stale.Err())
	}
	return stale, current
}
