package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
	"github.com/leasehold-go/leasehold/table"
)

// serve runs work for one customer, again and again until ctx ends. At any time, only one
// process runs work for that customer.
func serve(ctx context.Context, locks *leasehold.Client, customer string, work func(context.Context, string) error) {
	for ctx.Err() == nil {
		err := locks.Do(ctx, "customer/"+customer, func(ctx context.Context, lock *leasehold.Lock) error {
			if dead, ok := lock.TookOver(); ok {
				log.Printf("%s died over %s: look at what it left", dead.Owner, customer)
			}
			return work(ctx, customer)
		})
		switch {
		case err == nil, ctx.Err() != nil:
			continue
		case errors.Is(err, leasehold.ErrLost):
			log.Printf("%s: stopped in time: %v", customer, err)
		default:
			log.Printf("%s: %v", customer, err) // for example a missing table, a missing permission, or an error of work
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second): // a pause, because the next attempt may fail without delay, too
		}
	}
}

// Many processes run a worker for each customer. At any time only one worker serves a
// customer.
func ExampleClient_Do() {
	ctx, stop := context.WithCancel(context.Background())
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	served := make(chan string)
	work := func(ctx context.Context, customer string) error {
		served <- customer
		<-ctx.Done() // ends when the lock is lost, or when the service stops
		return context.Cause(ctx)
	}
	var workers sync.WaitGroup
	for _, customer := range []string{"ann", "bob"} {
		workers.Go(func() { serve(ctx, locks, customer, work) })
	}
	both := map[string]bool{<-served: true, <-served: true}
	stop()
	workers.Wait()
	fmt.Println("served:", both["ann"] && both["bob"])

	// Output: served: true
}

// newLocks returns a client for one call of a Lambda function. MaxSkew bounds the error of the
// machine's clock. So if a call has died, the next call acquires the key as soon as the lease
// has expired. It need not observe the key for the length of a lease first.
func newLocks(db leasehold.DB) (*leasehold.Client, error) {
	return leasehold.New(db, leasehold.Config{Table: "locks", MaxSkew: time.Second})
}

// closeAccount is one call of a Lambda function. It renews by hand, because nothing runs in
// the background while Lambda has frozen the process. It returns false if another call is
// working on the account.
func closeAccount(ctx context.Context, locks *leasehold.Client, account string) (bool, error) {
	lock, err := locks.Acquire(ctx, "account/"+account,
		leasehold.WithoutRenewal(), leasehold.NoWait(), leasehold.WithLease(30*time.Second))
	if errors.Is(err, leasehold.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = lock.Do(ctx, func(ctx context.Context, lock *leasehold.Lock) error {
		for range 3 { // three parts of the work; each begins with a renewal if the lease is trusted for too short a time
			if time.Until(lock.TrustedUntil()) < 10*time.Second {
				if err := lock.Renew(ctx); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	})
	return err == nil, err
}

// A Lambda function is suspended between calls, so nothing renews its locks. If a call dies,
// the next call takes over the work.
func ExampleWithoutRenewal() {
	ctx := context.Background()
	db := openDB(ctx)
	other, _ := newLocks(db)
	locks, _ := newLocks(db)
	theirs, err := other.Acquire(ctx, "account/7")
	if err != nil {
		log.Fatal(err)
	}

	done, err := closeAccount(ctx, locks, "7")
	fmt.Println("first call:", done, err)
	if err := theirs.Release(ctx); err != nil {
		log.Fatal(err)
	}
	done, err = closeAccount(ctx, locks, "7")
	fmt.Println("second call:", done, err)

	// Output:
	// first call: false <nil>
	// second call: true <nil>
}

// The outer function holds the lock, and calls a function that acquires the same lock.
func ExampleReentrant() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	addPoints := func(ctx context.Context, id string) error {
		return locks.Do(ctx, "customer/"+id, func(_ context.Context, lock *leasehold.Lock) error {
			fmt.Println("points added, under the same grant")
			return lock.Err()
		}, leasehold.Reentrant())
	}
	err := locks.Do(ctx, "customer/42", func(ctx context.Context, _ *leasehold.Lock) error {
		_, err := locks.Acquire(ctx, "customer/42")
		fmt.Println("without Reentrant, at once:", errors.Is(err, leasehold.ErrDeadlock))
		return addPoints(ctx, "42")
	})
	fmt.Println("error:", err)

	// Output:
	// without Reentrant, at once: true
	// points added, under the same grant
	// error: <nil>
}

// A service shuts down in this order: it accepts no more requests, lets running work end,
// releases its locks, and exits.
func ExampleClient_Close() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := locks.Do(r.Context(), "order/"+r.URL.Path, func(ctx context.Context, _ *leasehold.Lock) error { return ctx.Err() })
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	if _, err := http.Get(server.URL + "/7"); err != nil {
		log.Fatal(err)
	}

	server.Close() // call this on SIGTERM: it waits for requests in flight
	bye, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	fmt.Println("closed:", locks.Close(bye)) // Close waits for functions in Do, and releases all other locks
	_, err := locks.Acquire(ctx, "order/8")
	fmt.Println("afterwards:", errors.Is(err, leasehold.ErrClosed))

	// Output:
	// closed: <nil>
	// afterwards: true
}

// An operator lists the holders, and breaks each lock that has been held for too long.
func ExampleClient_Break() {
	ctx := context.Background()
	db := openDB(ctx)
	service, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer service.Close(ctx)
	stuck, err := service.Acquire(ctx, "import/7")
	if err != nil {
		log.Fatal(err)
	}

	operator, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	const tooLong = 0 // for example 6 * time.Hour; zero so that this example breaks the lock
	for r, err := range operator.List(ctx, leasehold.ListOptions{Prefix: "import/"}) {
		var bad *leasehold.RecordError
		switch {
		case errors.As(err, &bad):
			log.Print(bad) // one record cannot be read; the list continues
			continue
		case err != nil:
			log.Fatal(err)
		case r.Released || time.Since(r.GrantedAt) < tooLong:
			continue
		}
		if err := operator.Break(ctx, r, leasehold.BreakOptions{}); err != nil && !errors.Is(err, leasehold.ErrChanged) {
			log.Fatal(err)
		}
		fmt.Println("broken:", r.Key)
	}
	fmt.Println("its holder learns with its next request:", errors.Is(stuck.Renew(ctx), leasehold.ErrLost))

	// Output:
	// broken: import/7
	// its holder learns with its next request: true
}

// This program runs without AWS, for example on a laptop. An embedded engine stores the
// table in a file.
func Example_onOneMachine() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := boltstore.Open(filepath.Join(dir, "locks.db"))
	if err != nil {
		log.Fatal(err)
	}
	engine := localdynamo.New(localdynamo.WithStore(store))
	defer engine.Close()
	server := httptest.NewServer(engine) // optional: the AWS CLI and other languages can use this endpoint
	defer server.Close()

	db := engine.Client() // on AWS: dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks"}); err != nil {
		log.Fatal(err)
	}
	locks, _ := leasehold.New(db, leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)
	err = locks.Do(ctx, "job", func(ctx context.Context, lock *leasehold.Lock) error {
		fmt.Println("held by this process:", strings.HasPrefix(lock.Record().Owner, hostAndPid()))
		return nil
	})
	fmt.Println("error:", err)

	// Output:
	// held by this process: true
	// error: <nil>
}

func hostAndPid() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d/", host, os.Getpid())
}

// atMost is the limit for requests in ten minutes. The worker calls Do every two seconds,
// and the SDK sends each failed request up to three times.
const atMost = 3 * 300

// Users copy these examples. So a worker must pause between its attempts while an error lasts.
func TestExampleWorkersPauseAfterErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		table string
		fault lab.Fault
		work  error
		works bool // if true, the worker works again once the fault is removed
	}{
		"no table":        {"none", nil, nil, false},
		"access denied":   {"locks", lab.Answer(func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }), nil, true},
		"an outage":       {"locks", lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }), nil, true},
		"no answer":       {"locks", lab.Cut, nil, true},
		"work that fails": {"locks", nil, errors.New("no paper"), true},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				cfg := lab.Config()
				cfg.Table = tc.table
				c, wire := w.Client(cfg)
				ctx, stop := context.WithCancel(t.Context())
				var sent atomic.Int32
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					if sent.Add(1) > atMost {
						// The worker calls Do again without pauses. Stop it: otherwise virtual time
						// would stand still, and the test would never end.
						stop()
					}
					if tc.fault != nil {
						return tc.fault(r)
					}
					return r.Send()
				})
				calls, done := 0, make(chan struct{})
				go func() {
					defer close(done)
					serve(ctx, c, "ann", func(ctx context.Context, _ string) error {
						calls++
						if tc.work == nil {
							<-ctx.Done()
						}
						return tc.work
					})
				}()
				lab.Elapse(10 * time.Minute)
				if n := sent.Load(); n == 0 || n > atMost {
					t.Errorf("%d requests in ten minutes", n)
				}
				wire.SetFault(nil)
				lab.Elapse(time.Minute)
				stop()
				<-done
				lab.Want(t, "worked after the end", calls > 0, tc.works)
				_ = c.Close(context.Background())
			})
		})
	}
}
