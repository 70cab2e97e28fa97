// Package seconds calls a function each second while something lasts, such as a wait that
// the command reports.
package seconds

import "time"

// Each calls fn each second until end is called. end waits for a call in progress.
func Each(fn func()) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fn()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
