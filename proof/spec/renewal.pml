/*
 * Renewal. The holder of a key renews it, with its usual lease or a shorter one. It reads
 * the record to learn which of its attempts were applied. It releases the key or lets the
 * lease expire, while another client waits for the key.
 *
 * Promises: no two clients believe at the same time that they hold the key; the lock never
 * reports a loss to a holder whose grant the record shows.
 *
 * Bounds: 5 attempts, including the grant, none of which arrives twice; a lease of 3
 * ticks, one of which is the margin, or of 2 ticks. Abstracted: as in grant.pml.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   NAMED_ATTEMPTS: A condition names every earlier attempt without an answer.
 *   OWN_START: An attempt that is found to have landed counts from its own start.
 *   SHORTER: A shorter lease that is in flight shortens trust at once.
 *   FINAL_END: Trust that has ended never comes back.
 */
#define CLIENTS 2
#define ATTEMPTS (5 + MORE)
#define LEASE 3
#define TWICE 0
#define SHORTER
#define HOLDER_RELEASES
#include "record.h"
#include "client.h"
#include "holder.h"

init {
	atomic { granted(); run Network(); run Clock(); run Holder(0); run Client(1) }
}
