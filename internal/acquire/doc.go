// Package acquire acquires keys for one call: one key, the first of several that is free, or
// all of several. A call ends with one grant or several, or with an error.
//
//	              has its turn             a grant may be sent
//	local queue ───────────► looking ◄────────────────────────┐
//	     │                     │  a pause, computed by        │ held by another client
//	     │ handed over         │  internal/decide             │
//	     │                     ▼                              │
//	     │                  granting: one conditional write ──┤
//	     ▼                     │                              │ no answer: the next
//	   granted ◄───────────────┘ applied                      │ grant replaces this one
//	                           └──────────────────────────────┘
//
// Calls wait for records to change in one loop only: the method acquire in first.go. A call
// for all of several keys runs this loop for one key after the other, in sorted order. Meanwhile
// the client renews the keys that the call already holds. Before its first wait, the call reads
// the records of all keys that it does not hold yet. So the call observes the holders of all
// these keys at the same time.
//
// In the native layout, a waiter whose grant was rejected adds an entry to the queue in the
// record (recordqueue.go). The entry counts as a grant attempt of unknown outcome: the client
// that releases the key may turn it into a grant.
//
//	rejected ──► joining ──► queued ──► the record shows its grant ──► granted
//	                │  ▲        │
//	                └──┘        └──► the key is free, or its holder dead: granting, as above
//	        queue full or erased
//
// Three writes erase the queue: a takeover, a break, and a release that marks work as done. A
// live waiter sees at its next read that its entry is gone, and joins again with a new entry.
// Its earlier entries still count as attempts of unknown outcome: the network may deliver a
// copy of a join request late, and that copy may add the entry again.
//
// After a hand-over, the record is marked as handed over until the new holder renews. If
// the new holder never renews, another client takes the key over, and suspends the queue
// for a while: the remaining waiters in the queue may be dead, too. A suspension whose end is
// implausibly late comes from a wrong clock, and counts as ended.
//
//	          takeover of a handed-over key          its end, a wall-clock time, has passed
//	queue ─────────────────────────────► suspended ─────────────────────────────────────────────► queue
//	                                     no client joins or hands over: the key is
//	                                     released and polled as without a queue
//
// The first table lists the requests of a call. The second lists the replies that are the
// same for all requests, and the other events that end a call:
//
//	request           sent when                          if it fails
//	read              the holder may have changed        repeated after a pause that grows
//	grant             the key is free, or its record     rejected: the reply shows the holder
//	                  has not been read
//	takeover          the holder is dead. If the last    rejected: the holder has renewed, or another
//	                  read is older than a second, a     client was first.
//	                  read comes first. A client never   No answer: the queue may have been suspended, and
//	                  takes over a lock that it holds    erased with the waiter's entry
//	                  itself, for example in an outage
//	read of a session the holder has a session           repeated. Until it succeeds, the holder counts as
//	                                                     live, and the record is read as usual
//	dead mark         before a takeover, if the holder   rejected: the session is alive
//	                  has a session
//	join              another client holds the key, and  rejected: the key is free, or the queue is full.
//	                  its queue has room                 No answer: the next read shows whether the entry
//	                                                     is in the queue. A grant that is sent before
//	                                                     that read assumes that the entry is the head
//	leave             the caller has stopped waiting     rejected: the record shows where the entry is
//	                                                     now, or a grant made from the entry.
//	                                                     No answer: repeated for the length of one
//	                                                     hand-over lease at most
//
//	throttled         the request is repeated, and each throttled request is reported
//	refused           ends the call
//	credentials       missing, or refused by DynamoDB: the failed request has not granted the key.
//	                  The request is repeated if DynamoDB has accepted this client before.
//	                  If not, the call ends
//	denied            the request is repeated if DynamoDB has answered a request for the key: in
//	                  this call, in an earlier Campaign of the same Election (core.GoesOn), or in a
//	                  call that was ahead in the local queue. If not, the call ends: the policy may
//	                  never allow the key
//	no answer         a grant without an answer may have been applied. The call then sends another
//	                  grant, which replaces it. But if a reply shows that it was applied, and at least
//	                  half of its trusted time is left, the call has acquired the key
//	damaged           a damaged record never counts as free. If the call waits for several keys,
//	                  it drops this key, reports the damage, and undoes its own writes to the record
//	the caller left   a granted key is released. If a grant had no answer, one write frees the key,
//	                  and the attempt is in doubt: if the record later shows the attempt, this
//	                  client takes the key over at once
//	NoWait            the call ends when it finds a holder that appears live, or after ten seconds
//	                  without an answer. With EvenIfDead, any holder ends the call
//
// Each file mostly calls functions in the files below it:
//
//	all.go          acquires all of several keys, one after the other
//	first.go        the loop that waits, for one key or the first of several
//	grant.go        sends one grant of a key, whose outcome may stay in doubt
//	call.go         the start of a call, its turn among the goroutines, its trouble, and its end
//	key.go          what a call knows of one key, and what it reads next
//	recordqueue.go  the waiter's entry in the queue of the record
//	watch.go        reads a key as a waiter does, without acquiring it
//	client.go       Acquirer and Keys: what all calls of a client share
//	localqueue.go   the queues in which the goroutines of a client wait for each other
//
// [Want].Hold passes each grant to the client's [Keeper], which renews and releases it. A [Holding]
// shows when the lease was last renewed and whether the grant has ended. An [Observation] reads a
// key as a waiter does, for a caller that does not acquire the key. Package internal/liveness
// decides when a holder is dead. Package internal/attempts decides what a reply means.
package acquire
