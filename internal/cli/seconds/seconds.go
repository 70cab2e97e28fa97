// Package seconds calls a function every second until its caller ends that. leasehold uses
// it to report progress while it waits.
package seconds

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

// Each calls fn every second until the caller calls end. end waits for a call of fn in
// progress.
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
