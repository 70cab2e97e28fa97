// Package rwlock is a lock held by one writer or by up to 100 readers, on
// package leasehold.
//
//	rw, err := rwlock.New(locks, "dataset/7")
//	...
//	r, err := rw.AcquireRead(ctx)  // beside other readers
//	w, err := rw.AcquireWrite(ctx) // alone
//
// Both return a *leasehold.Lock: its context, Do, Commit, Guards, Renew and
// Release are those of a plain lock. A read lock fences as well: what is
// committed under it lands only while no writer can have been granted the key.
//
// # Fairness
//
// A waiting writer keeps new readers out; a writer that leaves lets the readers
// that wait go first. So, if holders end, a reader waits for the readers before
// a waiting writer, that writer, and one longest poll; a writer waits for that
// poll and the readers that are in. Among several writers it is chance. A dead
// holder, or a dead writer that waits, keeps others out for its lease and a poll.
// A call with leasehold.NoWait does not let readers go first. The moment for readers
// is as long as they pause in the client of the writer that leaves: one whose
// Config.PollMax is greater, or whose requests take longer than Config.PollMin, may
// miss it, more than once, and waits for another writer each time.
//
// # Limits
//
//   - The native layout alone: others are errors that match errors.ErrUnsupported.
//   - At most 100 readers; the 101st waits. All are in one row: each adds about
//     250 bytes to it, and a write costs a unit for each KB of it.
//   - No data and no attributes, no DeleteOnRelease and no Detach: options for
//     them are errors that match errors.ErrUnsupported.
//   - A read lock is no way to a write lock: asking for one inside the context of
//     the other is leasehold.ErrDeadlock.
//   - Goroutines of one client do not wait in a line: each waits for itself.
//   - With Config.SharedLease these locks are renewed one by one.
//   - The row stays when it is free; after a writer TTL may collect it, as it may
//     collect a released lock.
//
// The row and its requests are in docs/protocol.md, under Read/write locks; when
// to use one, and when not, in docs/recipes.md.
package rwlock
