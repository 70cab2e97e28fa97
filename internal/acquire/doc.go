// Package acquire acquires keys for one call: one key, the first of several that is free, or
// all of several. A call ends with grants or an error.
//
//	              its turn                 may be requested
//	local queue ───────────► looking ◄────────────────────────┐
//	     │                     │  a pause, computed by        │ held by another
//	     │ handed over         │  internal/decide             │
//	     │                     ▼                              │
//	     │                  granting: one conditional write ──┤
//	     ▼                     │                              │ no answer: the next
//	   granted ◄───────────────┘ applied                      │ write names this one
//	                           └──────────────────────────────┘
//
// All waiting is done by one loop, acquire in first.go. A call for all of several keys runs
// the loop for one key after the other, in sorted order, and renews the keys that it already
// holds. Before its first wait, it reads the records of all remaining keys, so that it
// observes their dead holders together.
//
// In the native layout, a waiter whose grant was rejected joins the queue in the record
// (queue.go). Its entry is an attempt without an answer: the client that releases the key
// may apply it.
//
//	rejected ──► joining ──► queued ──► the record shows its grant ──► granted
//	                │  ▲        │
//	                └──┘        └──► the key is free, or its holder dead: granting, as above
//	        queue full or erased
//
// A takeover, a break, and a release that stores a mark erase the queue. A live waiter sees
// at its next read that its entry is gone, and joins again with a new entry. Its earlier
// entries remain its attempts, since a late copy of a join may bring an entry back.
//
// After a hand-over, the record shows that the key was handed over until the new holder
// renews. A client that takes the key over from a holder that has never renewed suspends
// the queue for a while: the other waiters in it may be dead, too.
//
//	          takeover of a handed key               its time has passed, or lies too far ahead
//	queue ─────────────────────────────► suspended ─────────────────────────────────────────────► queue
//	                                     no client joins or hands over: the key is
//	                                     released and polled as without a queue
//
// The requests, and what it means if one fails:
//
//	request           sent when                          if it fails
//	read              the holder may have changed        repeated after a pause that grows
//	grant             the key is free, or its record     rejected: the reply shows the holder
//	                  has not been read
//	takeover          the holder is dead, and is no      rejected: the holder has renewed, or another
//	                  lock of this client, which may     client was first.
//	                  hold the key through an outage.    No answer: the queue may have been erased and
//	                  If the last read is older than a   suspended, and this client's own entry with it
//	                  second, a read comes first
//	read of a session the holder has a session           repeated: without an answer no holder is dead
//	dead mark         before a takeover under a session  rejected: the session is alive
//	join              another client holds the key, and  rejected: the key is free, or the queue is full.
//	                  its queue has room                 No answer: the next read shows whether the entry
//	                                                     is in the queue. A grant before that assumes
//	                                                     that the entry is the head
//	leave             the caller has left                rejected: the record shows the entry elsewhere,
//	                                                     or its grant.
//	                                                     No answer: repeated, for one hand-over lease
//
//	throttled         repeated, and reported each time
//	refused           ends the call
//	credentials       refused by DynamoDB, or missing: if DynamoDB has accepted this client before,
//	                  repeated as after no answer, but nothing was granted. Otherwise refused
//	denied            as credentials, if DynamoDB has answered a request for the key: in this
//	                  call, in a call that it continues, or in a call before it in the local
//	                  queue. Otherwise refused: the policy may never allow the key
//	no answer         the grant may have been applied. The next grant replaces it. If a reply shows
//	                  it with half of its trust left, the call has the key
//	damaged           never treated as free; one of several keys is left out and reported
//	the caller left   a granted key is released. If a grant had no answer, the key is freed once,
//	                  and the attempt is in doubt: if it is applied, this client takes over at once
//	NoWait            the first holder that appears live ends the call, or ten seconds
//	                  without an answer; with EvenIfDead, any holder does
//
// The package does not know the later life of a grant: [Want].Hold passes the grant to the
// client's [Keeper], and a [Holding] tells how old it is and whether it has ended. It does
// not know the options, handles and events of users either. An [Observation] reads a key as
// a waiter does, for a caller that does not want it. Package internal/liveness decides when
// a holder is dead, and internal/attempts what a reply means.
package acquire
