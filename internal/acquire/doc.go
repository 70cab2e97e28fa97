// Package acquire acquires keys for one call: one key, the first of several that is free, or
// all of several. It ends with grants or an error.
//
//	              its turn                 may be requested
//	local queue ───────────► looking ◄────────────────────────┐
//	     │                     │  a pause: how long, says     │ held by another
//	     │ handed over         │  internal/decide             │
//	     │                     ▼                              │
//	     │                  granting: one conditional write ──┤
//	     ▼                     │                              │ no answer: the next
//	   granted ◄───────────────┘ applied                      │ write names this one
//	                           └──────────────────────────────┘
//
// One loop waits, acquire in first.go: one key is the first of one, and all of several keys
// are granted one after the other, in the order of the keys, and what is held meanwhile
// is renewed. Before the first wait the records of all that are left are read, so that
// the dead holders of several keys are observed together.
//
// In the native layout a waiter that was refused joins the queue of the record (queue.go).
// Its entry is an attempt without an answer, which whoever releases may apply:
//
//	rejected ──► joining ──► queued ──► the record shows its grant ──► granted
//	                │  ▲        │
//	                └──┘        └──► it is free, or its holder dead: granting, as above
//	           full, or erased
//
// A write that ends a grant for its holder erases the queue: a takeover, a break, and a
// release that stores a mark. A live waiter sees at its next read that its entry is
// gone, and joins again under a new one; its earlier entries stay attempts of its own,
// since a late copy of a join may bring one back.
//
// The record of a key that was handed over says so until its holder renews it. A client that
// takes the key over from such a holder, which was never seen there, suspends the queue for a
// while: others who stood in it may be as dead.
//
//	          takeover of a handed key               its time has passed, or lies too far ahead
//	queue ─────────────────────────────► suspended ─────────────────────────────────────────────► queue
//	                                     nobody joins or hands over: the key is
//	                                     released and polled as without a queue
//
// What each request does, and what its failure means:
//
//	request           sent when                          fails
//	read              the holder may have changed        repeated after a pause that grows
//	grant             the key is free, or nothing known  rejected: the reply shows the holder
//	takeover          the holder is dead, and no lock    rejected: it was renewed, or another was first.
//	                  of this client, which may hold     No answer: the queue may have been erased and
//	                  on to it through an outage         suspended, and this client's own entry with it.
//	                  The record was read within the     Without such a look: a read comes first
//	                  last second
//	read of a session the holder has one                 repeated: no holder is dead for want of an answer
//	dead mark         before a takeover under a session  rejected: the session lives
//	join              somebody holds the key, and        rejected: the key is free, or the queue is full.
//	                  its queue has room                 No answer: the next look shows whether it stands
//	                                                     there, or the next write, which is as of its head
//	leave             the caller has left                the record shows the entry elsewhere, or its grant.
//	                                                     No answer: repeated, for one hand-over lease at most
//
//	throttled         repeated, and told each time
//	refused           ends the call
//	credentials       refused by DynamoDB, or missing: as no answer, but nothing was granted,
//	                  if DynamoDB has accepted this client before. Otherwise refused
//	denied            as credentials, if DynamoDB has answered a request for the key: in this
//	                  call, in one that it goes on from, or in one before it in the local
//	                  line. Otherwise refused: the policy may never allow the key
//	no answer         the grant may have been applied: the next one replaces it, or the
//	                  reply shows it, and with half of its trust left it is the grant
//	damaged           never taken for free; of several keys it is left out, and told
//	the caller left   what was granted is given back; what had no answer is freed once,
//	                  and remembered as in doubt: this client takes it over at once
//	NoWait            the first holder that appears live ends the call, or ten seconds
//	                  without an answer; with EvenIfDead, any holder does
//
// It does not know the later life of a grant: [Want].Hold puts it into the hands of the
// client's [Keeper], and a [Holding] says how old it is, and whether it has ended. It knows no
// options, handles or events of users. An [Observation] looks as a waiter does, for somebody who
// does not want the key. When a holder is dead, internal/liveness says;
// what a reply means, internal/attempts.
package acquire
