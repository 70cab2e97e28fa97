// Package lease decides how long a holder may trust its grant: until then, no other client can
// acquire the key. The package sends renewals, which prolong the trust. It reads the clocks to find
// out whether the trust has ended, and then notifies the holder.
//
//	trustedUntil = attemptStarted + lease − margin
//
// An attempt is one write that grants or renews the lease. attemptStarted is the time when the
// client sent the last attempt that is known to have been applied. Other clients can read the
// record of this attempt only later, so they cannot take the key over before attemptStarted + lease.
// The package reads two clocks that no user can set: the monotonic clock, and a clock that also
// runs while the machine is suspended. The trust ends as soon as one of these clocks reaches
// trustedUntil.
//
//	              a renewal was applied
//	               ┌──────────┐
//	   New         ▼          │     End: by its holder, or lost
//	─────────►  trusted ──────┘ ──────────────────────────► ended, for good
//
// A lease ends once, permanently: a late answer to a renewal does not restore the trust.
//
// # What ends a lease
//
// The [Holder] may end the lease, for example by a release. If the lease is lost, the package calls
// Holder.Lost, which makes an error and passes the error to Lease.End. The reasons for a loss:
//
//	expired        trustedUntil has passed
//	paused         trustedUntil has passed before the next renewal began: the
//	               process or the machine was suspended
//	gone           the record shows another grant, or a version that another
//	               client wrote
//	unreadable     the record that a renewal wrote cannot be decoded
//	with parent    the lease has a parent, which has ended
//
// A timer fires at trustedUntil. But the timer stops while the machine is suspended, and fires late
// if the process was suspended (SIGSTOP). So mutual exclusion does not depend on the timer: Ended
// reads the clocks in each call.
//
// # What each answer to a renewal does
//
// A lease sends its renewals one after another, as one sequence of attempts (package attempts).
//
//	applied                 trust counts from when this attempt was sent. If the record
//	                        shows that an earlier attempt was applied instead of this one,
//	                        trust counts from when the earlier attempt was sent
//	rejected                gone: the lease is lost
//	no answer               trust is unchanged. The conditions of the next attempt
//	                        and of a release also accept the version of this attempt
//	throttled, in conflict  trust is unchanged
//	refused                 trust is unchanged, and renewals continue: permissions
//	                        may be restored
//
// A renewal may write a shorter lease than the record has. DynamoDB may apply this renewal even if
// the client never receives an answer. So the trust is shortened as soon as the renewal is sent.
// Only a renewal that was applied prolongs the trust again. An answer that refuses or throttles the
// renewal does not: the network may have delivered two copies of the request. Then DynamoDB may
// have applied one copy, and refused the other.
//
// An attempt waits for its answer for a quarter of the remaining trust: at least 250 ms, if so much
// remains, and at most 2 s. This leaves time for further attempts. Package renewals decides when
// the next attempt is sent: after Timing.Every or, if attempts fail, after a part of the remaining
// trust.
//
// The condition of a release has to accept every version that the record may show. So the package
// adds the version of each attempt to [Lease.Versions] before it sends the attempt. The version
// stays there until the answer is recorded. Once the lease has ended, no version is added or
// removed, so a release can list all versions.
//
// # Outages
//
// If Leases.ThroughOutage is set, a lease is trusted beyond trustedUntil while DynamoDB answers
// that it is unavailable (throttling, or a server error). The lease is trusted for one lease
// duration after each of these answers. The first renewal without an answer ends this prolongation,
// because the network may have failed for this process only.
//
// # Parents
//
// A lock under a session has a lease of its own, whose parent is the session's lease. The lock
// is trusted while the parent is trusted. The lock's own renewals are rare. They keep clients
// that do not support sessions from taking the key over. If such a renewal is rejected, the lease
// ends, because the record was broken or deleted. Any other failure does not change the trust.
//
// # What the package does not know
//
// Package lease knows neither the queues of keys nor handles, commits, the locks of a session
// or the texts of errors. The Holder makes the writes and decodes the records.
package lease
