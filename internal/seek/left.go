package seek

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Left holds the records of keys that this client has handed to others, as it left them. A
// call that seeks such a key again begins with that record: a grant would be rejected, and
// show the same. It is safe for concurrent use, and the zero Left is empty.
type Left struct {
	mu      sync.Mutex
	records map[protocol.Key]left
}

type left struct {
	item protocol.Item
	sent decide.Instant // the write that has left it so
}

const (
	mostLeft    = 1000            // records that are kept
	leftIsFresh = 2 * time.Second // after that, a grant is as likely to succeed
)

// Note notes how a write that was sent then has left a record.
func (l *Left) Note(key protocol.Key, item protocol.Item, sent decide.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records == nil || len(l.records) >= mostLeft {
		l.records = map[protocol.Key]left{}
	}
	for old, r := range l.records {
		if durations.Less(sent.Mono, r.sent.Mono) >= leftIsFresh {
			delete(l.records, old)
		}
	}
	l.records[key] = left{item, sent}
}

// Take returns how a record was left a moment ago, once.
func (l *Left) Take(key protocol.Key, now decide.Instant) (protocol.Item, decide.Instant, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records[key]
	delete(l.records, key)
	return r.item, r.sent, ok && durations.Less(now.Mono, r.sent.Mono) < leftIsFresh
}
