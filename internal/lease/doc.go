// Package lease decides how long a grant may be trusted. It sends renewals, which prolong the
// trust. It reads the clocks to find out whether the trust has ended, and notifies the holder.
//
//	trustedUntil = attemptStarted + lease − margin
//
// attemptStarted is the time when the client sent the last attempt that is known to have been
// applied. No other client can have read the record of this attempt earlier, so none can take the
// key over before attemptStarted + lease. The lease reads two clocks that no user can set: the
// monotonic clock, and a clock that also runs while the machine is suspended. The trust ends as
// soon as one of these clocks reaches trustedUntil.
//
//	              a renewal was applied
//	               ┌──────────┐
//	   New         ▼          │     End: by its holder, or lost
//	─────────►  trusted ──────┘ ──────────────────────────► ended, for good
//
// A lease ends once, permanently: a later answer does not restore the trust.
//
// # What ends a lease
//
// The [Holder] may end the lease. A lease that finds out that it is lost calls Holder.Lost,
// which makes an error and passes the error to Lease.End. The reasons for a loss:
//
//	expired        trustedUntil has passed
//	paused         trustedUntil has passed before the next renewal began: the
//	               process or the machine was suspended
//	gone           the record shows another grant, or a version that another
//	               client wrote
//	unreadable     the record that a renewal wrote cannot be decoded
//	with parent    the lease has a parent, which has ended
//
// A timer fires at trustedUntil, but mutual exclusion does not depend on the timer: it stops while
// the machine is suspended, and fires late if the process was suspended (SIGSTOP). So Ended reads
// the clocks before it returns.
//
// # What each answer to a renewal does
//
// A lease sends its renewals one after another, as one sequence of attempts (package attempts).
//
//	applied                 trust counts from when this attempt was sent or, if the
//	                        record shows an earlier attempt, from when that attempt was sent
//	rejected                gone: the lease is lost
//	no answer               trust is unchanged. The conditions of the next attempt
//	                        and of a release also accept the version of this attempt
//	throttled, in conflict  trust is unchanged
//	refused                 trust is unchanged, and renewals continue: permissions
//	                        may be restored
//
// A renewal may write a shorter lease than the record has. DynamoDB may apply this renewal even if
// the client never receives an answer. So the trust is shortened as soon as the renewal is sent,
// until a renewal is applied. An answer that refuses or throttles the renewal does not restore the
// trust: the network may have delivered the request twice. DynamoDB may then have refused the
// second copy after it applied the first.
//
// An attempt waits for its answer for at most a quarter of the remaining trust, which
// leaves time for further attempts. Package renewals decides when the next attempt is sent:
// after the period or, if attempts fail, after a part of the remaining trust.
//
// The condition of a release has to accept every version that the record may show. The
// version of an attempt is added to [Lease.Versions] while the lease is trusted, before the
// attempt is sent. The version stays there until the answer is recorded. No version is added
// or removed once the lease has ended, so the condition of a release is complete.
//
// # Outages
//
// If Leases.ThroughOutage is set, a lease is trusted beyond trustedUntil while DynamoDB answers
// that it is unavailable: throttled, or a server error. Each such answer prolongs the trust until
// one lease after the answer. A missing answer does not prolong the trust: perhaps only this
// process is cut off.
//
// # Parents
//
// A lock under a session has a lease of its own, whose parent is the session's lease. The lock
// is trusted while the parent is trusted. The lock's own renewals are rare. They keep clients
// that do not support sessions from taking the key over. The trust in the lock does not depend
// on the success of these renewals, with one exception: a rejected renewal ends the lease,
// because the record was broken or deleted.
//
// # What the package does not know
//
// Package lease knows neither the queues of keys nor handles, commits, the locks of a session
// or the texts of errors. The Holder makes the writes and decodes the records.
package lease
