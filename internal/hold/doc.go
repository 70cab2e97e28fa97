// Package hold is what a client has been granted, from the grant to its end: locks, the
// sessions they may be under, and the requests that renew, use and free them.
//
//	               renewed (package lease), committed under (package fence)
//	                 ┌──────┐
//	  granted        ▼      │
//	──────────►  held ──────┘
//	              │
//	              ├── lost: trust ran out, or the record shows the grant no more ──► lost
//	              ├── Detach: nothing is sent; Resume, anywhere, holds it again ───► detached
//	              ├── Release, CommitAndRelease, Close ──► releasing ──┬──────────► released
//	              │                                            ▲      │
//	              │                                            └──────┘ no answer, or refused:
//	              │                                                     repeated until the lease
//	              │                                                     has ended
//	              └── Release, and a goroutine of this client waits, or
//	                  another client in the record's queue ────────────► handed over
//
// Trust in a [Lock] ends once, before anything is sent that frees its key: its contexts
// end, it is forgotten by [Holds.Locks], and what comes later changes nothing. A lock that
// was lost before its release began is lost: the release finds out what it may still free.
//
// # What each request does, and what its failure means
//
//	renewal          package lease
//	commit           package fence. Under several locks they take their turns (commit.go):
//	                 no two commits of a lock are under way, nor a commit and its release
//	release          applied: the key is free. Rejected: somebody has freed it (one of our
//	                 own attempts, as its version shows, or because nobody else could while
//	                 the lease lasted), else the lock was lost before. No answer, throttled,
//	                 or refused for now: repeated, and each attempt names those before it. The
//	                 caller waits until its ctx has ended and ReleaseGrace has passed. Then a
//	                 timer repeats it until the lease has ended, or Close does. Refused for
//	                 good: the lease frees the key
//	release that     the same, but the caller waits until the mark is stored, the lease has
//	stores a mark    ended or Close has given up. The record stays held until the lease ends, so
//	                 nobody does the work again before that, and each attempt names the grant.
//	                 No renewal is sent: a table that accepts one accepts the mark
//	hand-over        one write ends this grant and begins the next. It is a release until
//	                 it was applied; then whoever has left hands it on
//	hand-over to     the same for the head of the record's queue (handover.go), another client: no
//	the head         later attempt may replace it. Rejected: another stands first by now
//	commit with      a transaction of writes and releases. If it is not known to have
//	releases         been applied, each release follows alone
//	resume           a renewal of a grant that some process has detached. Two at a time
//	                 could each name the other's attempt: they go one after the other
//	mark a session   frees all its locks. No answer: repeated until the lease is over
//	dead
//
// A request outlives its caller (attempts.Outlive): its outcome must be known before the next
// write, so it continues, and Close waits for it.
//
// # Alone or under a session
//
// A lock alone is renewed by its own record. A lock under a session has a long lease in
// its record, for libraries that know no sessions, and a parent: its [lease.Lease] is
// trusted while the session's is. Code that depends on this asks the lease (Root, Orphaned,
// Outlived). Everything else that differs is in one place each: a commit names the session's row
// as well, and waits for its turn (guard.go, session.go); a break is noted in the row
// (sessionbroken.go); attempts that were given up are checked while the session lives
// (sessionindoubt.go); the session ends with one write for all (sessionend.go).
//
// # What it does not know
//
// How keys are acquired (package acquire, whose [acquire.Keeper] the client is); which options there
// are; the errors and events of users, which package core has interfaces for.
package hold
