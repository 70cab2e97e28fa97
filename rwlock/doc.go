// Package rwlock is a lock held by one writer or several readers, on package
// leasehold.
//
//	rw, err := rwlock.New(locks, "dataset/7")
//	...
//	r, err := rw.AcquireRead(ctx)  // with other readers
//	w, err := rw.AcquireWrite(ctx) // alone
//
// Both return a *leasehold.Lock: its context, Do, Commit, Guard, Renew and
// Release are those of a plain lock. A read lock fences as well: what is
// committed under it lands only while no writer can have been granted the key.
//
// # The row
//
// Exclusion of readers and writer needs one condition, so all of them are in
// one row: a map of readers, each with its own version and lease, a writer, and
// the intent of a writer that waits.
//
//	                  ┌────────── read ──────────┐ the last reader leaves
//	                  ▼                          │
//	free ──► read by one or more ──► intended ───┤
//	 ▲ │              ▲    a waiting writer's    ▼
//	 │ └── written ───┴────────────────────── written
//	 └────── │ ◄── readers first, for a moment ── │
//
// A holder renews its own entry alone. One whose version has stood still for
// its lease under the eyes of a waiter is dead: whoever is granted the key names
// that version in the condition, and removes the entry with the same write. A
// writer's grant names every reader that is left, all dead, and their number.
// Readers pass each other by: one whose grants and renewals have shown others
// that have been dead for a lease removes up to 25 of them with a write of its
// own.
//
// # What each request may come to
//
//	grant      as a plain lock's. A reader's that finds no row is refused, and
//	           makes the row with the next write.
//	renew      of one entry, as a plain lock's.
//	release    removes the entry. A reader's repeated release finds nothing and
//	           has landed; a writer's finds its own version.
//	intend     posted by a writer that waits for readers, renewed while it
//	           waits, removed by its grant or when it gives up. Unanswered: the
//	           next one names it. It keeps new readers out, and is dead like any
//	           entry when it stands still: nothing of exclusion rests on it.
//	sweep      removes dead readers, if each still shows the version that stood
//	           still. Sent once; the next reply shows what is left.
//	guard      holds while the entry is there with its token: one that a late
//	           duplicate of its grant brought back has another.
//
// # Fairness
//
// A writer that leaves says until when other writers let readers go first: for
// the longest pause that a reader may be making between two looks. Then a
// writer that finds readers posts its intent, and no reader comes in any more.
// So, with holders that end, a reader waits for the readers before a writer's
// intent, that writer, and one pause; a writer for that moment and the readers
// that are in. Among several writers it is chance, as among the waiters for a
// plain lock. A call with leasehold.NoWait is not held back for readers.
//
// # Limits
//
// Native layout. Up to 100 readers: each adds about 250 bytes to the row, and a
// write costs a unit for each KB of it. Goroutines of one client wait each for
// itself. Records carry no data and no attributes, options that set some are
// errors that match errors.ErrUnsupported, as are DeleteOnRelease and
// Lock.Detach. With Config.SharedLease these locks are renewed one by one. A
// read lock is no way to a write lock: asking for one inside the context of the
// other is leasehold.ErrDeadlock. The row stays when it is free; after a writer
// DynamoDB's TTL may collect it, as it may a released lock.
package rwlock
