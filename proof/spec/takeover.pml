/*
 * Takeover. The holder of a key renews it for a while, and dies or is suspended,
 * while two clients watch it to take it over: from it, then from each other.
 *
 * Promises: no two believe at the same time; and, in time, a dead holder's key
 * is granted to another, if requests are not lost for ever.
 *
 * Bounds: 4 attempts, the grant among them, of which one arrives twice; a lease
 * of 3 ticks, one of which is the margin. In time: one client, 6 attempts, of
 * which the holder sends one and the client loses sight of one. Abstracted: as
 * in grant.pml.
 *
 * Rules, each with the variant that goes without it:
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
	atomic { seen[1] != 0 -> watch[1] = 0 } /* is set forward */
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
