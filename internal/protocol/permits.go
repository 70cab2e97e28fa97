package protocol

import (
	"strconv"
	"strings"
)

// KindSemaphore is the kind of a row that stores a semaphore's number of permits.
const KindSemaphore = "semaphore"

// MostPermits is the most permits that a semaphore may have: one request can read
// all their records.
const MostPermits = 100

// Permits is the stored number of permits of a semaphore.
type Permits struct {
	N       int
	Most    int    // the highest N so far: permits above N may still be held
	ID      string // of the row: the version that created it
	Version string
}

// Counting is a protocol that has keys for the permits of a semaphore.
type Counting interface {
	Protocol

	// PermitKey returns the key of a permit of the semaphore under key; permits
	// are numbered from 0. A permit is an ordinary lock.
	PermitKey(key string, permit int) Key

	// PermitRows returns the protocol of rows that store the number of permits.
	// nil: the table does not store it, and each client uses its own number.
	PermitRows() PermitRows
}

// PermitRowsOf returns the PermitRows of a protocol; nil: it has none.
func PermitRowsOf(p Protocol) PermitRows {
	if counting, ok := p.(Counting); ok {
		return counting.PermitRows()
	}
	return nil
}

// IsPermits reports whether an item is the row of a semaphore.
func IsPermits(p Protocol, item Item) bool {
	rows := PermitRowsOf(p)
	if rows == nil {
		return false
	}
	_, err := rows.Decode(item)
	return err == nil
}

// PermitOf returns the key of the row of the semaphore of which key may be a permit, and
// the permit's number. Whether there is such a semaphore, the row says.
func PermitOf(p Protocol, key Key) (row Key, permit int, ok bool) {
	counting, ok := p.(Counting)
	if !ok || counting.PermitRows() == nil {
		return Key{}, 0, false
	}
	i := strings.LastIndexByte(key.Partition, '/')
	if i <= 0 {
		return Key{}, 0, false
	}
	n, err := strconv.Atoi(key.Partition[i+1:])
	if err != nil || n < 0 || n >= MostPermits || counting.PermitKey(key.Partition[:i], n) != key {
		return Key{}, 0, false
	}
	return counting.PermitRows().Key(key.Partition[:i]), n, true
}

// PermitRows reads and writes the rows that store a semaphore's number of permits.
// Such a row is never granted.
type PermitRows interface {
	// Key returns the key of the row of the semaphore under key.
	Key(key string) Key

	// Decode reads a row. The error is a *DecodeError if it is another kind of
	// row.
	Decode(item Item) (Permits, error)

	// Create writes p if there is no row.
	Create(k Key, owner string, p Permits) *Write

	// Replace writes p if the row still has version.
	Replace(k Key, owner, version string, p Permits) *Write
}
