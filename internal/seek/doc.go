// Package seek seeks keys for one call: one key, the first of several that is free, or
// all of several. It ends with grants or an error.
//
//	             its turn                  may be asked for
//	local line ───────────► looking ◄────────────────────────┐
//	     │                     │  a pause: how long, says     │ held by another
//	     │ handed over         │  internal/decide             │
//	     │                     ▼                              │
//	     │                  granting: one conditional write ──┤
//	     ▼                     │                              │ no answer: the next
//	   granted ◄───────────────┘ applied                      │ write names this one
//	                           └──────────────────────────────┘
//
// One loop waits, that of anyWaiter: one key is the first of one. All of several keys
// are granted in one transaction, and nothing is held before; after five refusals, or
// if the records cannot be read back, they are granted one by one in their order, and
// what is held meanwhile is renewed.
//
// With a line in the record a waiter that was refused stands there, too (recordline.go).
// Its entry is an attempt without an answer, which whoever releases may apply:
//
//	rejected ──► joining ──► in line ──► the record shows its grant ──► granted
//	                │  ▲        │
//	                └──┘        └──► it is free, or its holder dead: granting, as above
//	           full, or erased
//
// What each request does, and what its failure means:
//
//	request           sent when                          fails
//	read              the holder may have changed        repeated after a pause that grows
//	grant             the key is free, or nothing known  rejected: the reply shows the holder
//	takeover          the holder is dead, and no lock    rejected: it was renewed, or another was first
//	                  of this client, which may hold
//	                  on to it through an outage
//	read of a session the holder has one                 repeated: no holder is dead for want of an answer
//	dead mark         before a takeover under a session  rejected: the session lives
//	intent            a writer waits for readers         repeated: readers may be granted meanwhile
//	sweep             a reader sees dead readers         nothing: the next reply shows what is left
//	join              somebody holds the key, and     rejected: the key is free, or the line is full.
//	                  its line has room               No answer: the next look shows whether it stands,
//	                                                  or the next write, which is as of its head
//	leave             the caller left the line        the record shows the entry elsewhere, or its grant.
//	                                                  No answer: repeated, for three seconds at most
//	transaction       no key is known to be held         one by one after five refusals, or if it does not fit
//
//	throttled         repeated, and told each time
//	refused           ends the call; of a transaction: one by one
//	no answer         the grant may have been applied: the next one replaces it, or the
//	                  reply shows it, and with half of its trust left it is the grant
//	damaged           never taken for free; of several keys it is left out, and told
//	the caller left   what was granted is given back; what had no answer is freed once,
//	                  and remembered as unsettled: this client takes it over at once
//	NoWait            the first holder that is known ends the call, or ten seconds
//	                  without an answer; with Watch, one that looks dead is waited for
//
// It does not know what becomes of a grant: [Want].Hold puts it into the hands of the
// client, and a [Holding] says how old it is, and whether it has ended. It knows no
// options, handles or events of users. A [Watch] looks as a waiter does, for somebody who
// does not want the key. When a holder is dead, internal/liveness says;
// what a reply means, internal/attempts.
package seek
