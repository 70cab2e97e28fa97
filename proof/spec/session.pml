/*
 * Session. With a shared lease, a client renews one row, its session, instead of the
 * record of its lock. The client closes, or the lease of its session expires. Meanwhile a
 * waiter watches the session's row, to mark it dead and take the lock over. A commit of
 * the client is in flight all the time. The row is the record of record.h: the row's
 * creation is its grant, and the dead mark is its release.
 *
 * Promises: when the lock is taken over, the client no longer believes that it holds the
 * lock; the client never learns of a loss while the row shows its session; no commit is
 * applied once the session has freed the lock.
 *
 * Bounds: 4 attempts, including the creation, none of which arrives twice; a lease of 3
 * ticks, one of which is the margin; one waiter. An operator may delete the row, or TTL
 * may delete it once it is dead and no request is in flight. Abstracted: the grant of the
 * lock is one step, because grant.pml models it.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   MARK_FIRST: No lock is taken over before its session is marked dead.
 *   MARK_VERSION: The mark names the version that stood still.
 *   DEAD_FINAL: No renewal brings a dead session back.
 *   ID_ONCE: An id is used for one session only.
 *   SESSION_GUARD: A commit checks the session's row beside the lock's record.
 *   NO_ROW: A row that is not there is watched for one lease.
 *   CLOSED_FIRST: Trust ends before the client marks its own session dead.
 */
#define CLIENTS 2
#define ATTEMPTS (4 + MORE)
#define LEASE 3
#define TWICE 0
#define HOLDER_RELEASES
#define NOROW 15
bool freed; /* the session has freed the lock */
bool taken; /* the waiter has taken the lock over */
bool committing;
#define onLanding(x) freed = freed || kind[x] == RELEASE
#ifdef WITHOUT_CLOSED_FIRST
#define WITHOUT_TRUST_ENDS_FIRST
#endif
#include "record.h"
#include "holder.h"

proctype Waiter(byte c) {
	byte a;
	byte s;

look:	if
	:: atomic { !held(cur) && cur != 0 -> goto take }
	:: atomic { held(cur) && cur != seen[c] -> notice(cur); goto look }
	:: atomic { cur == 0 && seen[c] != NOROW ->
		seen[c] = NOROW;
		watch[c] = LEASE;
#ifdef WITHOUT_NO_ROW
		goto take
#else
		goto look
#endif
		}
	:: atomic { cur == 0 && seen[c] == NOROW && watch[c] == 0 -> goto take }
	:: atomic { seen[c] != 0 && seen[c] != NOROW && watch[c] == 0 && last < ATTEMPTS ->
#ifdef WITHOUT_MARK_FIRST
		goto take;
#endif
		send(RELEASE, 1, only(seen[c]));
		left[a] = 0 }
	fi;
	if
	:: atomic { reply[a] == APPLIED -> hangup(a); goto take }
	:: atomic { reply[a] > APPLIED -> s = SHOWN(reply[a]); hangup(a);
		if
		:: held(s) -> notice(s)
		:: !held(s)
		fi;
		s = 0; goto look }
	:: atomic { hangup(a); goto look } /* no answer */
	fi;

take:	atomic { assert(!believes(0)); taken = true; seen[c] = 0; watch[c] = 0; a = 0 }
}

/* A commit is applied at any time after it was sent at which its guard holds. */
#ifdef WITHOUT_SESSION_GUARD
#define guarded (taken == 0)
#else
#define guarded (!taken && held(cur))
#endif
proctype Commit() {
	atomic { believes(0) -> committing = true }
	atomic {
		committing = false;
		if
		:: guarded -> assert(!freed)
		:: else
		fi
	}
}

proctype Hand() {
	atomic { held(cur) -> cur = 0 } /* deletes the row */
}
#if ATTEMPTS > 4
#define inFlight (copies[1] + copies[2] + copies[3] + copies[4] + copies[5])
#else
#define inFlight (copies[1] + copies[2] + copies[3] + copies[4])
#endif
proctype TTL() {
	byte c, a;
	atomic {
		cur != 0 && !held(cur) && inFlight == 0 -> cur = 0 }
#ifdef WITHOUT_ID_ONCE
	atomic { last < ATTEMPTS -> send(GRANT, 1, 0) }
#endif
}

init {
	atomic {
		granted(); run Network(); run Clock(); run Holder(0); run Waiter(1); run Commit(); run TTL();
		if
		:: run Hand()
		:: skip
		fi
	}
}
