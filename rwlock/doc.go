// Package rwlock is a lock for up to n readers or one writer. It uses only the public API of
// package leasehold.
//
//	rw, err := rwlock.New(locks, "dataset/7", 8)
//	...
//	r, err := rw.AcquireRead(ctx)  // beside other readers
//	w, err := rw.AcquireWrite(ctx) // alone
//
// The lock is n keys, KEY/reader/0 to KEY/reader/n-1. A reader acquires one of them with
// Client.AcquireAny, and the writer acquires all of them with Client.AcquireAll. Each key is an
// ordinary lock, so every layout has read/write locks, with the properties of locks and groups:
// contexts that end in time, Do, Commit, Guards, Break, and one record for each key in listings.
// A read lock fences as well: its commits are applied only while no writer can have been granted
// its key.
//
// # What it costs
//
// A reader costs as much as a lock: two writes. While several readers come at once, a grant may
// be rejected because another reader has the key, which costs one more write each time. The
// writer pays for each of the n keys a grant, a release, and a renewal in each period, and its
// Commit checks each of them. So choose n as small as the readers allow: reader n+1 waits.
//
// # Order of readers and writers
//
// A writer that waits for readers acquires the keys in their order and keeps them, so that
// new readers find fewer and fewer keys free. For each key it waits like any waiter,
// together with readers that wait for the same key. Writers acquire in the same order and
// cannot deadlock. A dead holder keeps its key for one lease, as with any lock.
//
// # Limits
//
//   - A read lock cannot become a write lock: AcquireWrite inside the context of a read lock
//     returns leasehold.ErrDeadlock. Release it, acquire to write, and read again.
//   - Each key has its own tokens. A target outside DynamoDB that compares tokens must compare
//     tokens of one key: for the writer, the token of the first lock of its group.
package rwlock
