package locktest

import (
	"io"
	"sync"
)

// output writes to the test's log until the test ends. After that it discards all text, because
// writing to the log would then panic.
type output struct {
	mu sync.Mutex
	w  io.Writer // nil after the test has ended
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(b), nil
	}
	return o.w.Write(b)
}

func (o *output) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}
