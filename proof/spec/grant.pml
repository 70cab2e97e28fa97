/*
 * Grant. Two clients seek one key, hold it, release it or let its lease run
 * out, and seek it again. Nobody renews.
 *
 * Promises: no two believe at the same time; a grant never lands on its own
 * release.
 *
 * Bounds: 4 attempts, of which one arrives twice; a lease of 2 ticks, of which
 * one is the margin. Abstracted: data, other rows, throttled and refused
 * requests (they are requests that were lost, and whose sender knows it).
 *
 * Rules, each with the variant that goes without it:
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
