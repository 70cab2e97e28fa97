package say

import (
	"io"
	"slices"
	"sync"
	"time"
)

// A queue writes texts in their order. It writes them in a goroutine, so that its callers need not
// wait for a slow reader. It is safe for concurrent use.
type queue struct {
	to       io.Writer
	patience time.Duration    // limits how long add waits for the reader
	broken   func(int, error) // called with the number of bytes written if a write fails, and then later texts are dropped; nil if they are written nevertheless

	mu      sync.Mutex
	texts   []string      // texts that are not written yet; the first is being written
	written chan struct{} // closed when texts becomes empty; nil before the first text
	dropped int           // number of texts that were dropped
	failed  error         // error of the last write; nil if it did not fail
}

// textsKept is the number of texts that a queue keeps for a slow reader. If there are more, the
// queue drops the oldest, so that the error with which leasehold ends is never dropped.
const textsKept = 1 << 14

// add adds text to the queue, and waits up to q.patience until it is written. If an earlier text is
// not written yet, add does not wait. So a reader that does not read delays the callers only once.
func (q *queue) add(text string) error {
	q.mu.Lock()
	late := len(q.texts) > 0
	if len(q.texts) == textsKept {
		q.texts = slices.Delete(q.texts, 1, 2) // the first is being written
		q.dropped++
	}
	if q.texts = append(q.texts, text); !late {
		q.written = make(chan struct{})
		go q.write()
	}
	q.mu.Unlock()
	if late {
		return nil
	}
	_, err := q.await(q.patience)
	return err
}

// write writes texts until none is left.
func (q *queue) write() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.texts) > 0 {
		text := q.texts[0]
		q.mu.Unlock()
		n, err := io.WriteString(q.to, text)
		if err != nil && q.broken != nil {
			q.broken(n, err)
			q.to = io.Discard
		}
		q.mu.Lock()
		q.texts, q.failed = q.texts[1:], err
	}
	close(q.written)
}

// await waits until all texts are written, but no longer than limit. It returns how many are not
// written, including dropped texts, and the error of the last write.
func (q *queue) await(limit time.Duration) (unwritten int, failed error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.texts) > 0 {
		written := q.written
		q.mu.Unlock()
		select {
		case <-written:
		case <-time.After(limit):
		}
		q.mu.Lock()
	}
	return len(q.texts) + q.dropped, q.failed
}
