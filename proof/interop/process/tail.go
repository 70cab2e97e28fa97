//go:build linux

package process

import (
	"bytes"
	"sync"
)

// Tail is a writer that keeps only the last 8 KiB of a program's output. Callers quote this text
// in their error message if the program fails. A Tail is safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	last []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-most):]
	return len(p), nil
}

// String returns the text that t has kept, without white space at its beginning and end.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.last))
}
