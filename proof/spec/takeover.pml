/*
 * Takeover. The holder of a key renews it for a while, and then dies or is suspended.
 * Two clients watch the key, and take it over from the holder and then from each other.
 *
 * Promises: no two clients believe at the same time that they hold the key; a dead
 * holder's key is eventually granted to another client, if not every request is lost.
 *
 * Bounds: 4 attempts, including the grant, of which one arrives twice; a lease of 3
 * ticks, one of which is the margin. For the promise about what eventually happens: one
 * client and 6 attempts; the holder sends one of them, and the client stops waiting for
 * the reply to one. Abstracted: as in grant.pml.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   FIRST_SIGHT: A version's age begins with the reply that first showed it.
 *   RESTART: The age of a changed version begins anew.
 *   STOOD_STILL: A takeover names the version that stood still.
 *   MONOTONIC: An observer reads the monotonic clock alone.
 *   BOTH_CLOCKS: A holder reads two clocks, and one runs on in suspend.
 *   LOOK: Whoever asks a holder makes it read its clocks.
 *   TAKEOVER, in time: A holder whose version stood still for its lease is taken over.
 */
#ifdef LIVENESS
#define CLIENTS 2
#define ATTEMPTS (6 + MORE)
#define TWICE 0
byte renewals = 1;
byte patience = 1;
#define mayRenew (renewals > 0)
#define givesUp patience > 0; patience--
#else
#define CLIENTS 3
#define ATTEMPTS (4 + MORE)
#define SUSPENDED
#endif
#define LEASE 3
#include "record.h"
#include "client.h"
#include "holder.h"

#ifdef WITHOUT_MONOTONIC
proctype WallClock() {
	atomic { seen[1] != 0 -> watch[1] = 0 } /* the wall clock is set forward */
}
#endif

init {
	atomic {
		granted(); run Network(); run Clock(); run Holder(0); run Client(1);
#ifndef LIVENESS
		run Client(2);
#endif
#ifdef WITHOUT_MONOTONIC
		run WallClock()
#endif
	}
}

#ifdef LIVENESS
ltl another { <> (conf[1] != 0) }
#endif
