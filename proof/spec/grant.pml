/*
 * Grant. Two clients acquire one key, hold it, release it or let its lease expire, and
 * acquire it again. No client renews.
 *
 * Promises: no two clients believe at the same time that they hold the key; a grant is
 * never applied to the record of its own release.
 *
 * Bounds: 4 attempts, of which one arrives twice; a lease of 2 ticks, one of which is
 * the margin. Abstracted: data, other rows, and throttled or refused requests. The model
 * treats such a request as lost, except that its sender knows that it was not applied.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   NEW_VERSION: Each attempt writes a version that was never used before.
 *   STAMP: Trust counts from before the call is sent.
 *   MARGIN: Trust ends a margin before the lease does.
 *   OWN_COPY: No grant lands on a record that shows its own grant id.
 *   TRUST_ENDS_FIRST: Trust ends before a release is sent.
 */
#define CLIENTS 2
#define ATTEMPTS (4 + MORE)
#define RELEASES
#include "record.h"
#include "client.h"

init {
	atomic { run Network(); run Clock(); run Client(0); last > 0 -> run Client(1) }
}
