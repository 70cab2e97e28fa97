// Package seconds calls a function every second until the caller stops the calls. leasehold
// uses it to report progress while it waits.
package seconds

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

// Each starts to call fn once a second, and returns a function that stops these calls. If a
// call of fn is in progress, that function waits until the call has returned.
func Each(fn func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		for attempts.Wait(ctx, time.Second) {
			fn()
		}
	})
	return func() {
		cancel()
		calls.Wait()
	}
}
