// Package liveness observes holders, and decides when they are dead. Only a dead holder's
// key may be taken over.
//
// The holder in a record is dead at the earliest of the times that apply to its layout:
//
//	firstSeen(version) + lease  by this client's monotonic clock, in layouts without an expiry time
//	leaseEnds + skew            by this client's wall clock, if the clocks of both clients are bounded
//	expiresAt + skew + step     by this client's wall clock, in layouts with an expiry time
//
// For a holder under a session, the session's row counts instead of the record. This holder is
// dead only once a client has marked the row as dead.
//
//	       a new version                the row is marked
//	     ┌───────────────┐             ┌─────────────────► dead, for good
//	     ▼               │             │
//	observed ──────────► not renewed for its lease
//	                                   │ the row shows a new version
//	                                   └─────────────────► observed
//
// What each failure does:
//
//	a read fails               no holder is found dead until a read succeeds
//	the client is new          it waits for a whole lease or, with bounded clocks, until leaseEnds + skew
//	a clock exceeds its bound  a live holder may be treated as dead
//	an item cannot be decoded  an error: the item's holder is never found dead
//	two clients mark a row     DynamoDB applies one write; the reply to the other write shows the mark
//	a session's row is gone    the observer waits for one lease: the session's locks may still be trusted
//
// Only the type Rule decides when a holder is dead. Observer applies the Rule for waiters, which
// then take the key over by a conditional write. Packages holders and ui only observe holders: they
// call Rule.Next after each read.
//
// The package knows records and other clients' sessions. It does not know whether a client
// waits for a key. The waiters of one client share each reading of a session's row.
package liveness
