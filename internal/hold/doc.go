// Package hold manages the grants of a client from their beginning to their end: the locks,
// the sessions of the locks, and the requests that renew, use and free the locks.
//
//	               renewed (package lease), committed under (package fence)
//	                 ┌──────┐
//	  granted        ▼      │
//	──────────►  held ──────┘
//	              │
//	              ├── lost: trust expired, or the record shows another grant ──────► lost
//	              ├── Detach: usually sends nothing; Resume holds the key again ───► detached
//	              ├── Release, CommitAndRelease, Close ──► releasing ──┬──────────► released
//	              │                                            ▲      │
//	              │                                            └──────┘ no answer, or refused:
//	              │                                                     repeated until the lease
//	              │                                                     has expired
//	              └── Release, and a goroutine of this client waits, or
//	                  another client waits in the record's queue ──────► handed over
//
// Before this client sends a write that frees the key, it ends the trust in the [Lock]. This also
// cancels the contexts of the lock, and [Holds.Locks] no longer returns the lock. No later reply
// can restore the trust. If a lock was lost before its release began, the release still frees the
// key if the record shows the grant, but the lock stays lost.
//
// # What each request does, and what its failure means
//
//	renewal          package lease
//	commit           package fence. Only one commit or release of a lock runs at a time
//	                 (group.go)
//	release          applied: the key is free. Rejected: the release has succeeded if the record
//	                 shows the version of an earlier attempt. It also counts as successful if an
//	                 earlier attempt had no reply, and the first attempt was sent within the
//	                 lease. In all other cases the lock was lost before. No answer, throttled, or
//	                 a temporary refusal: repeated. The condition of each attempt names the
//	                 versions of all earlier attempts. The caller waits until its ctx is done and
//	                 ReleaseGrace has passed. From then on, a timer and Close repeat the release
//	                 until the lease has expired. A lasting refusal: the key is free once the
//	                 lease expires
//	release that     like a release, but the caller waits until the mark is stored, the lease has
//	stores a mark    expired or Close has given up. Until the lease expires, the record shows the
//	                 grant, so no other client begins the work again. Renewing the lease would not
//	                 help: if DynamoDB accepted a renewal, it would also accept this release
//	hand-over        one write ends this grant and begins the next, for a goroutine of this
//	                 client. If the goroutine no longer waits when the reply arrives, its grant is
//	                 handed on or released. After an unknown outcome, a timer sends a release later
//	hand-over to     one write ends this grant and begins a grant for another client, the head of
//	the head         the record's queue (handover.go). No later attempt may replace the new grant.
//	                 Rejected: the key is handed to the new head, if there is one
//	commit with      a transaction of writes and releases. Unless the transaction is known
//	releases         to have been applied, each release is then sent as a write of its own
//	resume           a renewal of a grant that some process has detached. Only one resume of
//	                 a grant runs at a time: if two ran, the condition of one could accept the
//	                 version that the other has written, and both would succeed
//	mark a session   frees all locks under the session. No answer: repeated until the lease has
//	dead             expired
//
// A request continues after its caller has stopped waiting (attempts.Outlive), because its outcome
// must be known before the next write. Close waits for such requests.
//
// # Alone or under a session
//
// A lock without a session is renewed by writes of its own record. A lock under a session has a
// long lease in its record, for libraries that do not know sessions. The lock's own [lease.Lease]
// has the session's lease as parent, and is trusted only while the parent is trusted. The methods
// Root and Outlived of Lease implement this. The other differences are in one file each:
//
//   - guard.go and session.go: a commit also checks the session's row, so commits take turns
//   - sessionbroken.go: a break leaves a notice in the row
//   - abandonedgrants.go: keys of abandoned attempts are checked while the session is renewed
//   - sessionend.go: one write ends the session and frees all its locks
//
// # Files
//
// Each file mostly calls functions in the files below it:
//
//	detach.go           Detach and Resume, which pass a grant to another process
//	close.go            Close of a client, which releases all its locks
//	sessionend.go       the end of a session, which frees all locks under it
//	handover.go         a release that grants the key to a goroutine or to the record's queue
//	commit.go           Commit, and CommitAndRelease
//	transaction.go      the transaction of a commit, and the guards of its locks
//	guard.go            what a rejected guard shows about its lock
//	session.go          the lease that all locks of a client share
//	abandonedgrants.go  abandoned grant attempts under a session
//	renew.go            Renew, and what a renewal learns from the record
//	freeing.go          the attempts to free one key, over all calls that release its lock
//	release.go          one call that releases a lock
//	group.go            the locks of one call
//	sessionbroken.go    the notices of breaks in the row of a session
//	lostrelease.go      whether a release whose reply was lost was applied
//	handle.go           the handles of one grant, and the contexts that are cancelled when it ends
//	lock.go             Lock: one grant of one key, from beginning to end
//	client.go           Holds: all locks of a client
//	row.go              the record of a lock or of a session, as its holder sees it
//
// # What the package does not know
//
// Package hold does not know how keys are acquired: package acquire does, and calls [Holds]
// as its [acquire.Keeper]. The root package knows the options, and makes the errors and
// events that users receive, through interfaces of package core.
package hold
