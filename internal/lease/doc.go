// Package lease decides how long a grant may be trusted: by which clocks, when it is
// renewed, what ends it, and how its holder is notified.
//
//	trustedUntil = attemptStarted + lease − margin
//
// attemptStarted is when the last attempt that is known to be applied was sent, not
// when its answer came. Nobody can have seen its record earlier, so nobody can take it
// over before attemptStarted + lease. Two clocks are read, and neither can be set: the
// monotonic clock, and the one that runs on while the machine is suspended. The first
// of them to reach trustedUntil ends the trust.
//
//	              a renewal was applied
//	               ┌──────────┐
//	   New         ▼          │     End: given up, or lost
//	─────────►  trusted ──────┘ ──────────────────────────► ended, for good
//
// A lease ends once, and for good: an answer that comes later changes nothing.
//
// # What ends it
//
// Its [Holder] may end a lease. When a lease finds out that it is lost it tells the
// Holder, which ends it and knows the error:
//
//	expired        trustedUntil has come
//	paused         the same, but no renewal had even started: the process stood
//	               still, or the machine was suspended
//	gone           the record shows another grant, or a version that is not ours
//	unreadable     the record that a renewal wrote cannot be decoded
//	with parent    the lease has a parent, which has ended
//
// A timer fires at trustedUntil, but nothing relies on it: timers stop while
// the machine is suspended, and fire late if the process was stopped. So every
// question whether the lease lasts reads the clocks first.
//
// # What each answer to a renewal does
//
// Renewals are one sequence of attempts (package attempts), one at a time.
//
//	applied                 trust counts from when this attempt was sent, or the
//	                        earlier one that the record shows
//	rejected                gone: the lease is lost
//	no answer               trust stays. The next attempt names this one as well,
//	                        and so does a release
//	throttled, in conflict  trust stays
//	refused                 trust stays, and renewals go on: permissions may come
//	                        back
//
// An attempt may ask for a shorter lease than the record shows. Once it is sent, it may
// be applied without our knowing. So trust is shortened when it is sent, and stays so
// until a renewal is applied. An answer that it was refused or throttled gives nothing
// back: that may be the answer to a second copy of it, while the first was applied.
//
// An attempt may take a quarter of the trust that is left, which leaves time for
// others. Package renewals decides when the next one is sent: by the period or, if
// attempts fail, by the trust that is left.
//
// A release has to name every version that the record may show. An attempt is added to
// [Lease.Versions] while the lease is trusted, before it is sent, and stays there until
// the lease has recorded its answer. A lease that has ended records none, so a release
// has named all that can matter.
//
// # Outages
//
// With Leases.ThroughOutage a lease is trusted beyond trustedUntil while DynamoDB
// answers that it cannot: throttled, or a server error. After each such answer trust goes
// on for one lease. After silence it does not: this process alone may be cut off.
//
// # Parents
//
// A lock under a session has a lease of its own. Its parent is the session's lease, and
// it is trusted while the parent is. Its own renewals are rare. They only touch its
// record, so that clients that know nothing of sessions do not take it for dead. A
// renewal that succeeds or fails changes no trust. One that is rejected ends the lease:
// the record was broken, or deleted.
//
// # What it does not know
//
// The queues of keys, handles, the locks of a session, commits, and the texts of errors.
// The Holder makes the writes and decodes the records.
package lease
