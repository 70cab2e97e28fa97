// Package liveness observes holders, and decides when they are dead. Only a dead holder's
// key may be taken over.
//
//	record           deadAt = firstSeen(version) + lease           this client's monotonic clock
//	                        = leaseEnds + skew, if that is earlier this client's wall clock, if both clients' clocks are bounded
//	                 deadAt = expiresAt + skew + step              where records say when they expire
//	under a session  deadAt = firstSeen(version of the session's row) + the session's lease
//	                 and even then, the holder is dead only once the row is marked dead
//
//	         a new version                the row is marked
//	       ┌───────────────┐             ┌─────────────────► dead, for good
//	       ▼               │             │
//	  observed ──────────► not renewed for its lease
//	                                     │ the row shows a new version
//	                                     └─────────────────► observed
//
// What each failure does:
//
//	a read fails               no holder is found dead until a read succeeds
//	the client is new          it waits for a whole lease or, with bounded clocks, until leaseEnds + skew
//	a clock exceeds its bound  a live holder may be treated as dead
//	an item cannot be decoded  an error: the item's holder is never found dead
//	two clients mark a row     one write is applied; the reply to the other shows the mark
//	a session's row is gone    the session's locks may still be trusted for one lease
//
// Only the type Rule decides when a holder is dead. Observer applies that rule for
// waiters, which send a conditional write when a holder is dead. Packages holders and ui only
// observe: they call Rule.Next after each read.
//
// The package knows records and other clients' sessions. It does not know whether a client
// waits for a key. The waiters of one client share each reading of a session's row.
package liveness
