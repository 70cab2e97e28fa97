package localdynamo

import "iter"

// Store is an ordered map from bytes to bytes, with transactions. An Engine keeps its tables in
// a Store. The default Store is in memory. Package boltstore has a Store in a file.
//
// A Store must be safe for concurrent use. Updates are serialised. A View sees all changes of
// an Update or none. If fn returns an error, View or Update returns that error unchanged, and
// Update undoes the changes of fn. If Update returns nil, later transactions see the changes of
// fn. A Store in a file must write the changes to the file before Update returns nil.
type Store interface {
	View(fn func(Tx) error) error
	Update(fn func(Tx) error) error // stores either all changes of fn or no changes
	Close() error
}

// Tx is a transaction on a Store. It is not safe for concurrent use. The slices that it
// returns are valid until the transaction ends.
//
// Get returns nil for a missing key. Range yields the pairs with from <= key < to in the order
// of keys; if to is nil, there is no upper bound. The caller must not call Put or Delete during
// a Range. In a View, Put and Delete return an error.
type Tx interface {
	Get(key []byte) []byte
	Put(key, value []byte) error
	Delete(key []byte) error
	Range(from, to []byte) iter.Seq2[[]byte, []byte]
}
