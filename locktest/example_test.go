package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/locktest"
)

// These are the tests of a function that closes a month once, even if several processes
// call it:
//
//	func closeMonth(ctx context.Context, locks *leasehold.Client, month string, step func(context.Context) error) error {
//		return locks.Do(ctx, "close/"+month, func(ctx context.Context, _ *leasehold.Lock) error { return step(ctx) })
//	}
func Example() {
	t := newProbe(context.Background()) // in a real test, t is the *testing.T of that test
	env := locktest.New(t)
	locks := env.Client(leasehold.Config{})

	err := closeMonth(t.Context(), locks, "2026-10", func(context.Context) error { return nil })
	fmt.Println("nobody else is at it:", err)

	held := env.Hold("close/2026-11") // simulates another process that holds the key
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = closeMonth(ctx, locks, "2026-11", func(context.Context) error { return nil })
	fmt.Println("another is at it, not run:", errors.Is(err, leasehold.ErrNotRun))

	err = held.Release(t.Context())
	fmt.Println("the other is done:", err)
	err = locks.Do(t.Context(), "close/2026-11", func(ctx context.Context, lock *leasehold.Lock) error {
		env.Steal("close/2026-11") // simulates another client that takes the key over while this process is paused
		return lock.Commit(ctx, nil)
	})
	fmt.Println("another took over meanwhile:", errors.Is(err, leasehold.ErrLost))
	fmt.Println("left held:", len(t.end()))

	// Output:
	// nobody else is at it: <nil>
	// another is at it, not run: true
	// the other is done: <nil>
	// another took over meanwhile: true
	// left held: 0
}
