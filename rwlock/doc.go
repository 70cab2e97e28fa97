// Package rwlock is a lock for up to n readers or one writer. It uses only the public API of
// package leasehold.
//
//	rw, err := rwlock.New(locks, "dataset/7", 8)
//	...
//	r, err := rw.AcquireRead(ctx)  // other readers may hold the lock, too
//	w, err := rw.AcquireWrite(ctx) // no other client holds the lock
//
// The lock is n keys, KEY/reader/0 to KEY/reader/n-1. A reader acquires one of them with
// Client.AcquireAny, and the writer acquires all of them with Client.AcquireAll. Each key is an
// ordinary lock, so read/write locks work in every layout. They have the properties of locks and
// groups: contexts that are cancelled when a lock is lost, Do, Commit, Guards, Break, and one
// record for each key in listings.
//
// A read lock also fences writes: its commits are applied only while no writer can have been
// granted the reader's key.
//
// # What it costs
//
// A reader costs as much as a lock: two writes. If several readers arrive at the same time, two
// readers may try the same key. DynamoDB then rejects the write of the second reader, which pays
// for one more write, to another key. The writer pays for the grant, the renewals and the release
// of each of the n keys, and its Commit checks each key. So choose n no larger than the number of
// readers that you expect at the same time. While n readers hold the lock, the next reader waits.
//
// # Order of readers and writers
//
// A writer that waits for readers acquires one key after the other and keeps them, so that
// new readers find fewer and fewer keys free. For each key it waits like any waiter, together
// with readers that wait for the same key. All writers acquire the keys in the same order, so two
// writers cannot deadlock. The key of a dead holder is granted again once its lease has expired.
//
// # Limits
//
//   - A read lock cannot become a write lock: AcquireWrite inside the context of a read lock
//     returns leasehold.ErrDeadlock. Release the read lock, call AcquireWrite, and read again.
//   - Each key has its own tokens. A target outside DynamoDB that compares tokens must compare
//     tokens of one key: for the writer, the token of the first lock of its group.
package rwlock
