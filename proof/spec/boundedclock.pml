/*
 * Clocks with a bounded error (MaxSkew). The holder of a key renews it for a while, and
 * dies. A client that has not watched the holder takes over once the lease has ended by
 * the wall clock: the record contains the end of the lease. Some renewals come from a
 * client without MaxSkew. Such a client writes no end of the lease, and leaves the earlier
 * end in the record.
 *
 * Promise: no two clients believe at the same time that they hold the key.
 *
 * Bounds: 4 attempts, including the grant, none of which arrives twice; a lease of 4
 * ticks, one of which is the margin. The wall clock of the writer is one tick behind. The
 * client's clock is wrong by at most one tick; the client reads it twice, and the clock is
 * set in between. Abstracted: as in grant.pml. An end in the past counts as an end now.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   END_OF_VERSION: An end counts only for the version that it names.
 *   READ_AFTER: The wall clock is read after the attempt has begun.
 *   OWN_SKEW: A holder stops trusting its MaxSkew earlier.
 *   SKEW_PASSED: An observer waits for its own MaxSkew.
 */
#define CLIENTS 2
#define ATTEMPTS (4 + MORE)
#define LEASE 4
#define SKEW 1
#define TWICE 0
#define BOUNDED_CLOCK

#ifdef WITHOUT_OWN_SKEW
#define TRUST (LEASE - DRIFT)
#else
#define TRUST (LEASE - DRIFT - SKEW)
#endif

byte ends[ATTEMPTS + 1]; /* true time until the end that the attempt writes, in ticks; 0 if none or if passed */
bool says[ATTEMPTS + 1]; /* whether the attempt writes an end */
byte said;               /* attempt whose end the record contains */
byte ahead;              /* how far the client's clock is ahead of the slowest clock that its error allows, in ticks */
byte looks = 1;          /* how often the client may read a version again that it has already seen */

#ifdef WITHOUT_READ_AFTER
#define pauses(x) :: ends[x] = LEASE - SKEW - 1; says[x] = true
#else
#define pauses(x)
#endif
#define onSend(x) if \
	:: ends[x] = LEASE - SKEW; says[x] = true \
	:: left[x] = LEASE - DRIFT; says[x] = false; ends[x] = 0 \
	pauses(x) \
	fi
#define alsoTick(x) ends[x] = (ends[x] > 0 -> ends[x] - 1 : 0)
#define alsoForget(x) ends[x] = (x == said -> ends[x] : 0); says[x] = (x == said -> says[x] : false)
#define onLanding(x) said = (says[x] -> x : said)

#define beforeSight if :: ahead = 0 :: ahead = SKEW :: ahead = 2 * SKEW fi
#ifdef WITHOUT_SKEW_PASSED
#define allowance 0
#else
#define allowance SKEW
#endif
#define byClock(v) (ends[v] + SKEW + allowance > ahead -> ends[v] + SKEW + allowance - ahead : 0)
#ifdef WITHOUT_END_OF_VERSION
#define sight(v) (said != 0 && byClock(said) < LEASE -> byClock(said) : LEASE)
#else
#define sight(v) (said == v && byClock(v) < LEASE -> byClock(v) : LEASE)
#endif

#include "record.h"
#include "client.h"
#include "holder.h"

init {
	atomic {
		granted(); ends[1] = LEASE - SKEW; says[1] = true; said = 1;
		run Network(); run Clock(); run Holder(0); run Client(1)
	}
}
