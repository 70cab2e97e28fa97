package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
)

// A report once a day, by whichever process comes first, and again if it fails.
func ExampleEvery() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	attempt := 0
	report := func(context.Context, *leasehold.Lock) error {
		if attempt++; attempt == 1 {
			return errors.New("no data yet")
		}
		return nil
	}
	for range 3 { // three hosts, say
		err := locks.Do(ctx, "nightly-report", report, leasehold.Every(24*time.Hour))
		switch {
		case errors.Is(err, leasehold.ErrDone):
			fmt.Println("done before")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("done")
		}
	}
	// Output:
	// no data yet
	// done
	// done before
}

// One deployment for each commit. The release after it says that it is done.
func ExampleOnce() {
	ctx := context.Background()
	locks, _ := leasehold.New(openDB(ctx), leasehold.Config{Table: "locks"})
	defer locks.Close(ctx)

	for _, commit := range []string{"8c1f", "8c1f", "a07e"} {
		lock, err := locks.Acquire(ctx, "deploy", leasehold.Once(commit))
		var done *leasehold.DoneError
		if errors.As(err, &done) {
			fmt.Println(done.Done.Once, "is deployed, by token", done.Done.Token > 0)
			continue
		}
		fmt.Println("deploying", commit)
		_ = lock.Release(ctx, leasehold.MarkDone())
	}
	// Output:
	// deploying 8c1f
	// 8c1f is deployed, by token true
	// deploying a07e
}
