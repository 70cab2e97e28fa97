// Package seconds calls a function each second while something lasts, such as a wait that
// the command reports.
package seconds

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
)

// Each calls fn each second until end is called. end waits for a call in progress.
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
