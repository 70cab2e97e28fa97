// Package rwlock is a lock for up to n readers or one writer, on the public API of package
// leasehold.
//
//	rw, err := rwlock.New(locks, "dataset/7", 8)
//	...
//	r, err := rw.AcquireRead(ctx)  // beside other readers
//	w, err := rw.AcquireWrite(ctx) // alone
//
// The lock is n keys, KEY/reader/0 to KEY/reader/n-1. A reader acquires one of them with
// Client.AcquireAny, the writer all of them with Client.AcquireAll. Each key is an ordinary
// lock, so every layout has read/write locks, and what holds for a lock and a group holds
// here: contexts that end in time, Do, Commit, Guards, Break, and one record a key in
// listings. A read lock fences as well: its commits land only while no writer can have
// been granted its key.
//
// # What it costs
//
// A reader costs what a lock costs: two writes. While several readers come at once, a
// grant may be rejected because another reader has the key: one more write each time. The
// writer pays for each of the n keys, a grant, a release, and a renewal in each period, and
// its Commit checks each of them. So choose n as small as the readers allow: reader n+1 waits.
//
// # Who waits for whom
//
// A writer that waits for readers acquires the keys in their order and keeps what it has,
// so that new readers find fewer and fewer keys free. For each key it waits as any waiter
// does, beside the readers that want the same key. Writers acquire in the same order and
// cannot deadlock. A dead holder keeps its key for one lease, as any lock.
//
// # Limits
//
//   - There is no way from a read lock to a write lock: AcquireWrite inside the context of a
//     read lock is leasehold.ErrDeadlock. Release, acquire to write, and read again.
//   - Tokens grow for each key by itself. A target outside of DynamoDB that compares
//     tokens must compare those of one key: the writer's is that of the first lock of its group.
package rwlock
