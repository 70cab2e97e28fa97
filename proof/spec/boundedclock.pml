/*
 * Clocks that are vouched for. The holder of a key renews it for a while, and
 * dies. A client that has not watched it takes over once the lease has ended by
 * the wall clock. Some renewals are of a client that does not vouch: it leaves in
 * the record what it does not know.
 *
 * Promise: no two believe at the same time.
 *
 * Bounds: 4 attempts, the grant among them, none of which arrives twice; a lease
 * of 4 ticks, one of which is the margin; the wall clock of who writes is behind
 * by one tick, and that of the client wrong by one at most, read twice, and set
 * in between. Abstracted: as in grant.pml. An end that is over counts as one that
 * is over just now.
 *
 * Rules, each with the variant that goes without it:
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

byte ends[ATTEMPTS + 1]; /* what is left until the end that the attempt writes, by true time; 0: it writes none, or it is over */
bool says[ATTEMPTS + 1]; /* it writes one */
byte said;               /* the attempt whose end stands in the record */
byte ahead;              /* by how much the client's clock is ahead of the slowest that it may be */
byte looks = 1;          /* again at a version that it has seen */

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
