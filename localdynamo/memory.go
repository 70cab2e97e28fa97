package localdynamo

import (
	"errors"
	"iter"
	"sync"

	"github.com/google/btree"
)

var errReadOnly = errors.New("localdynamo: a change in a View")

// memory is a Store that keeps its pairs in this process's memory.
type memory struct {
	mu    sync.RWMutex // guards the field "pairs"; not held during I/O
	pairs *btree.BTreeG[pair]
}

// pair is a key with its value. A change replaces the whole value, and never modifies the bytes of
// the old value.
type pair struct {
	key   string
	value []byte
}

func newMemory() *memory {
	return &memory{pairs: btree.NewG(32, func(a, b pair) bool { return a.key < b.key })}
}

// View calls fn. Several Views may run at the same time, but not during an Update.
func (m *memory) View(fn func(Tx) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return fn(&memoryTx{pairs: m.pairs, readOnly: true})
}

// Update calls fn while no other View or Update runs. It undoes fn's changes if fn returns an
// error or panics.
func (m *memory) Update(fn func(Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &memoryTx{pairs: m.pairs}
	kept := false
	defer func() {
		if !kept {
			tx.undo()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	kept = true
	return nil
}

// Close does nothing, because the garbage collector frees the memory of the pairs.
func (m *memory) Close() error { return nil }

// memoryTx is a transaction on a memory. It changes the memory's pairs immediately, and keeps the
// old pairs so that the method "undo" can restore them.
type memoryTx struct {
	pairs    *btree.BTreeG[pair]
	readOnly bool
	// Replaced pairs, in the order of the changes. A nil value means that the key did not
	// exist.
	before []pair
}

func (tx *memoryTx) undo() {
	for i := len(tx.before) - 1; i >= 0; i-- {
		if was := tx.before[i]; was.value == nil {
			tx.pairs.Delete(was)
		} else {
			tx.pairs.ReplaceOrInsert(was)
		}
	}
}

// Get returns the value of key, or nil if the key does not exist.
func (tx *memoryTx) Get(key []byte) []byte {
	found, _ := tx.pairs.Get(pair{key: string(key)})
	return found.value
}

// Put sets the value of key.
func (tx *memoryTx) Put(key, value []byte) error {
	if tx.readOnly {
		return errReadOnly
	}
	k := string(key)
	old, _ := tx.pairs.ReplaceOrInsert(pair{k, append(make([]byte, 0, len(value)), value...)})
	tx.before = append(tx.before, pair{k, old.value})
	return nil
}

// Delete removes the key if it exists.
func (tx *memoryTx) Delete(key []byte) error {
	if tx.readOnly {
		return errReadOnly
	}
	if old, found := tx.pairs.Delete(pair{key: string(key)}); found {
		tx.before = append(tx.before, old)
	}
	return nil
}

// Range yields the pairs with from <= key < to.
func (tx *memoryTx) Range(from, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		end := string(to)
		tx.pairs.AscendGreaterOrEqual(pair{key: string(from)}, func(p pair) bool {
			if to != nil && p.key >= end {
				return false
			}
			return yield([]byte(p.key), p.value)
		})
	}
}
