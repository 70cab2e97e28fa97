/*
 * Hand-over. The holder of a key hands it to the next goroutine of its own client, in one
 * write that ends one grant and begins the other. Or the holder releases the key. The
 * next goroutine lets its lease expire. Another client watches the key. A commit of the
 * first holder is in flight all the time.
 *
 * Promises: no two goroutines or clients believe at the same time that they hold the key;
 * the lock never reports a loss to a goroutine whose grant the record shows; no commit is
 * applied after another grant of the key.
 *
 * Bounds: 5 attempts, including the grant, none of which arrives twice; a lease of 3
 * ticks, one of which is the margin. Abstracted: as in grant.pml; one goroutine waits in
 * the client's queue, and does not leave it.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   PREDECESSOR: A hand-over names the grant that it ends.
 *   TRIED_GRANTS: A hand-over or release names every grant that a hand-over before it may have made.
 *   NEW_GRANT: A hand-over makes a grant of its own.
 *   HANDED_FIRST: Trust ends before a hand-over is sent.
 */
#define CLIENTS 3
#define ATTEMPTS (5 + MORE)
#define LEASE 3
#define TWICE 0
#define HANDS_OVER
#define FIRST 0
#define NEXT 1
#include "record.h"
#include "client.h"
#include "holder.h"

#ifdef WITHOUT_TRIED_GRANTS
#define mayBe only(1)
#else
#define mayBe (only(1) | tried[FIRST])
#endif

proctype Goroutines() {
	byte a, s;
	byte c = NEXT;

	atomic { believes(FIRST) && last < ATTEMPTS ->
#ifndef WITHOUT_HANDED_FIRST
		conf[FIRST] = 0
#endif
	}
hand:	atomic { last < ATTEMPTS ->
		send(HANDOVER, last, only(1) | tried[FIRST]);
#ifdef WITHOUT_NEW_GRANT
		grant[a] = 1;
#endif
		ends[a] = mayBe }
	if
	:: atomic { reply[a] == APPLIED -> s = a; hangup(a); goto next }
	:: atomic { reply[a] > APPLIED -> s = SHOWN(reply[a]); hangup(a);
		if
		:: has(tried[FIRST] | only(a), s) && left[s] > 0 -> goto next
		:: else -> assert(!has(tried[FIRST] | only(1) | only(a), s)) /* loss reported, though the record shows the grant */
		fi;
		goto over }
	:: atomic { tried[FIRST] = tried[FIRST] | only(a); hangup(a); a = 0 } /* no answer */
		if
		:: goto hand
		:: goto release
		fi
	fi;

next:	atomic { begin(s); conf[FIRST] = 0; tried[FIRST] = 0; a = 0; s = 0 }
	atomic { !believes(NEXT) -> conf[NEXT] = 0 }
	goto over;

release: atomic { last < ATTEMPTS ->
		conf[FIRST] = 0;
		send(RELEASE, 1, only(1) | tried[FIRST]);
		ends[a] = mayBe;
		left[a] = 0 }
	if
	:: atomic { reply[a] != NONE ->
		s = (reply[a] > APPLIED -> SHOWN(reply[a]) : 0);
		hangup(a);
		assert(!held(s) || !has(tried[FIRST] | only(1), s)); /* reported as lost, although the record shows its grant */
		s = 0 }
	:: atomic { hangup(a) }
	fi;
over:	atomic { a = 0; tried[FIRST] = 0 }
}

/* A commit of the first holder is applied at any time at which its guard holds. */
proctype Commit() {
	believes(FIRST);
	atomic {
		if
		:: held(cur) && grant[cur] == 1 -> assert(conf[NEXT] == 0 && conf[2] == 0)
		:: else
		fi
	}
}

init {
	atomic { granted(); run Network(); run Clock(); run Goroutines(); run Client(2); run Commit() }
}
