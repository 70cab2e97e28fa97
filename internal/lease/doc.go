// Package lease decides how long a grant may be trusted: by which clocks, when it is
// renewed, what ends it, and how its holder is notified.
//
//	trustedUntil = attemptStarted + lease − margin
//
// attemptStarted is the time when the client sent the last attempt that is known to be
// applied. No other client can have read that record earlier, so none can take the key
// over before attemptStarted + lease. The lease reads two clocks that no user can set: the
// monotonic clock, and a clock that also runs while the machine is suspended. The trust
// ends when the first of them reaches trustedUntil.
//
//	              a renewal was applied
//	               ┌──────────┐
//	   New         ▼          │     End: by its holder, or lost
//	─────────►  trusted ──────┘ ──────────────────────────► ended, for good
//
// A lease ends once, permanently: a later answer does not restore the trust.
//
// # What ends it
//
// The [Holder] may end its lease. A lease that finds out that it is lost calls
// Holder.Lost, which makes the error and ends the lease with it:
//
//	expired        trustedUntil has passed
//	paused         the same, and no renewal had begun: the process or the
//	               machine was suspended
//	gone           the record shows another grant, or a version that another
//	               client wrote
//	unreadable     the record that a renewal wrote cannot be decoded
//	with parent    the lease has a parent, which has ended
//
// A timer fires at trustedUntil, but no promise relies on it: timers stop while the machine
// is suspended, and fire late if the process was suspended (SIGSTOP). So Ended reads the
// clocks first.
//
// # What each answer to a renewal does
//
// Renewals are one sequence of attempts (package attempts), one at a time.
//
//	applied                 trust counts from when this attempt was sent, or the
//	                        earlier one that the record shows
//	rejected                gone: the lease is lost
//	no answer               trust is unchanged. The conditions of the next attempt
//	                        and of a release also name the version of this one
//	throttled, in conflict  trust is unchanged
//	refused                 trust is unchanged, and renewals continue: permissions
//	                        may be restored
//
// An attempt may write a shorter lease than the record has. Once the attempt is sent, it may
// be applied although no answer says so. So trust is shortened when the attempt is sent,
// until a renewal is applied. An answer that refuses or throttles the attempt does not
// restore the trust: the network may have delivered the request twice. DynamoDB may then
// have refused the second copy after it applied the first.
//
// An attempt waits for its answer for at most a quarter of the remaining trust, which
// leaves time for further attempts. Package renewals decides when the next one is sent:
// after the period or, if attempts fail, after a part of the remaining trust.
//
// The condition of a release has to name every version that the record may show. The
// version of an attempt is added to [Lease.Versions] while the lease is trusted, before the
// attempt is sent. It stays there until the answer is recorded. No version is added or
// removed once the lease has ended, so the condition of a release is complete.
//
// # Outages
//
// With Leases.ThroughOutage a lease is trusted beyond trustedUntil while DynamoDB answers
// that it is unavailable: throttled, or a server error. Each such answer prolongs the
// trust by one lease. A missing answer does not: perhaps only this process is cut off.
//
// # Parents
//
// A lock under a session has a lease of its own. Its parent is the session's lease, and
// it is trusted while the parent is. Its own renewals are rare. They keep clients that do
// not support sessions from taking the key over. The trust does not depend on whether they
// succeed or fail. A rejected renewal ends the lease: the record was broken, or deleted.
//
// # What it does not know
//
// Package lease knows neither the queues of keys nor handles, commits, the locks of a session
// or the texts of errors. The Holder makes the writes and decodes the records.
package lease
