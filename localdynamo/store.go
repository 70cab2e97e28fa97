package localdynamo

import "iter"

// Store stores the tables: it is an ordered map from bytes to bytes, with transactions. By
// default an Engine keeps it in memory. Package boltstore has a Store in a file.
//
// A Store must be safe for concurrent use. Updates are serialised. A View sees all changes
// of an Update or none. If fn returns an error, its changes are undone, and the error is
// returned unchanged. If Update returns nil, its changes are as durable as the Store is.
type Store interface {
	View(fn func(Tx) error) error
	Update(fn func(Tx) error) error // stores all changes of fn, or none
	Close() error
}

// Tx is a transaction on a Store. It is not safe for concurrent use. The slices that it
// returns are valid until the transaction ends.
//
// Get returns nil for a missing key. Range yields the pairs with from <= key < to in the
// order of keys; a nil to means no upper bound. The caller must not change anything during
// a Range. In a View, Put and Delete fail.
type Tx interface {
	Get(key []byte) []byte
	Put(key, value []byte) error
	Delete(key []byte) error
	Range(from, to []byte) iter.Seq2[[]byte, []byte]
}
