package localdynamo

import "iter"

// Store is where tables are kept: an ordered map of bytes with transactions.
// Memory is the default; package boltstore keeps one in a file.
//
// A Store is for concurrent use. Update's transactions happen one after the
// other; a View sees all of an Update or nothing of it. An error of fn undoes
// what fn did and is returned as it is. What Update returned nil for is kept, as
// far as the Store keeps anything.
type Store interface {
	View(fn func(Tx) error) error
	Update(fn func(Tx) error) error // all of fn's changes or none
	Close() error
}

// Tx is one transaction on a Store. Slices are valid until it ends.
//
// Get returns nil for a key that is not there. Range yields the pairs with
// from <= key < to in the order of keys; a nil to is the end. Nothing may be
// changed while a Range runs. In a View, Put and Delete fail. A Tx is for one
// goroutine.
type Tx interface {
	Get(key []byte) []byte
	Put(key, value []byte) error
	Delete(key []byte) error
	Range(from, to []byte) iter.Seq2[[]byte, []byte]
}
