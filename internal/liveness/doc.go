// Package liveness observes holders, and decides when they are dead. Only a dead holder's
// key may be taken over.
//
// The holder in a record is dead at the earliest of the times that apply to its layout:
//
//	firstSeen(version) + lease  by this client's monotonic clock, in layouts without an expiry time
//	leaseEnds + skew            by this client's wall clock, if the clocks of both clients are bounded
//	expiresAt + skew + step     by this client's wall clock, in layouts with an expiry time
//
// A holder under a session renews the session's row instead of the record, so the times of the row
// apply. From the earliest of these times on, any client may mark the row as dead. The holder is
// dead once the row is marked.
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
//	a session's row is gone    the observer waits for one lease: the session's client may still trust its locks
//
// Only the type Rule decides when a holder is dead. Observer applies the Rule for waiters, which
// then take the key over by a conditional write. The code of internal/holders and internal/ui calls
// Rule.Next after each read, and takes no key over.
//
// If several goroutines of one client wait for locks of the same session, they share each reading
// of the session's row.
package liveness
