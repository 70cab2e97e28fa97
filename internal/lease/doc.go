// Package lease knows how long something that was granted may be trusted: by
// which clocks, when it is renewed, what ends it, and who is told.
//
//	trustedUntil = attemptStarted + lease − margin
//
// attemptStarted is when the attempt was sent that was last known to be applied,
// not when its answer came: nobody can have seen the record before that, so
// nobody can take it over before attemptStarted + lease. Two clocks are read,
// neither of which can be set: the monotonic one, and the one that runs on while
// the machine is suspended. Whichever comes to trustedUntil first ends the trust.
//
//	              a renewal was applied
//	               ┌──────────┐
//	   New         ▼          │     End: given up, or lost
//	─────────►  trusted ──────┘ ──────────────────────────► ended, for good
//
// A lease ends once, and never revives: an answer that comes afterwards is of no
// effect, whatever it says.
//
// # What ends it
//
// Whoever has the lease may end it. The lease finds out by itself that it is
// lost, and tells its [Holder], who ends it and knows what to say of it:
//
//	expired        trustedUntil has come
//	paused         the same, but no renewal had even come to its turn: the process
//	               stood still, or the machine was suspended
//	gone           the record shows another grant, or a version that is not ours
//	unreadable     what a renewal wrote does not decode
//	with parent    the lease has a parent, which has ended
//
// A timer finds that the time has come. It is not relied on: timers stand still
// while the machine is suspended, and fire late if the process was stopped. So
// each question whether the lease lasts looks at the clocks first.
//
// # What each answer to a renewal does
//
// Renewals are one sequence of attempts (package attempts), one at a time.
//
//	applied                 trust counts from the sending of this attempt, or of
//	                        the earlier one that the record shows
//	rejected                gone: the lease is lost
//	no answer               trust stays. The next attempt names this one as well,
//	                        and so does a release
//	throttled, in conflict  trust stays
//	refused                 trust stays, and so do the attempts in the background:
//	                        permissions come back
//
// An attempt may ask for a shorter lease than stands. From the moment at which it
// is sent it may be applied without our knowing, so trust is shortened then, and
// stays so while it has no answer.
//
// An attempt may take a quarter of the trust that is left, so that there is room
// for others. When the next one is sent is decided by package renewals: by the
// period, and by the trust left if attempts fail.
//
// A release has to name every version that the record may show. The attempt in
// flight is among [Lease.Versions] from the instant at which the lease was still
// trusted, and stays there until the lease has entered its answer. A lease that
// has ended enters none, so what a release has named stays true.
//
// # Outages
//
// With Client.ThroughOutage a lease outlasts its time while DynamoDB answers that
// it cannot: throttled, or a server error. Each such answer counts for a lease.
// Silence is no such answer: it may be this process alone that is cut off.
//
// # Parents
//
// A lock under a session has a lease of its own whose parent is that of the
// session. It is trusted while its parent is; its own renewals, which are rare,
// only touch its record, so that readers who know nothing of sessions do not take
// it for dead. One that fails extends nothing and ends nothing. One that is
// rejected ends the lease: the record was broken, or deleted.
//
// # What it does not know
//
// Keys' lines, handles, a session's members, commits and the texts of errors. How
// a renewal is spelled and its record read is the Holder's to say.
package lease
