/*
 * Hand-over. The holder of a key hands it to the next goroutine of its own
 * client, in one write that ends one grant and begins the other, or gives up and
 * releases it; the next lets it run out. A client elsewhere watches the key, and
 * a commit of the first holder is on its way all the while.
 *
 * Promises: no two believe at the same time, in one client or in two; neither
 * goroutine is told that the key is lost while the record shows its grant; no
 * commit lands once another has the key.
 *
 * Bounds: 5 attempts, the grant among them, none of which arrives twice; a lease
 * of 3 ticks, of which one is the margin. Abstracted: as in grant.pml; the queue
 * has one goroutine, who stays.
 *
 * Rules, each with the variant that goes without it:
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
		:: else -> assert(!has(tried[FIRST] | only(1) | only(a), s)) /* lost, and the record shows its grant */
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
		assert(!held(s) || !has(tried[FIRST] | only(1), s)); /* lost, and the record shows its grant */
		s = 0 }
	:: atomic { hangup(a) }
	fi;
over:	atomic { a = 0; tried[FIRST] = 0 }
}

/* A commit of the first holder lands at any time, if its guard holds. */
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
