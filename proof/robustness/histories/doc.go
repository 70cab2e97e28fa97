// Package histories checks that locks are linearizable. Clients share locks over a
// network with faults, and the package records the result and the times of each call.
// The checker porcupine then decides whether a correct lock could have returned all
// these results. The package contains only tests.
//
//	go test ./histories                                                                            15,000 histories; 375 with -race
//	LEASEHOLD_HISTORIES=1000000 go test -timeout 0 ./histories                                     750,000
//	LEASEHOLD_HISTORY=4711 go test -run '^TestMutexIsLinearizableInRandomHistories$' ./histories   the history of seed 4711
//
// The simulation (internal/simulation) checks each request against rules about the content
// of the records. This package does not read records. It uses only the results that users
// of the library get, and a short model of a lock (lockModel). So a mistake in the rules of the
// simulation does not hide an error from this package.
//
// # Contents of a history
//
// A process trusts its lock from the grant until the context of the lock is cancelled, by a
// release or a loss. A commit adds one to a counter in DynamoDB, and a read returns the counter. A
// write goes to a target that compares fencing tokens. A look reads the counter after all processes
// have ended.
//
//	operation              begins                                     ends
//	acquire                at the call                                at its return
//	end                    when the process stops trusting its lock   at the same instant
//	commit                 at the call                                at its return; never if the outcome is unknown
//	release, read, write   at the call                                at its return
//	look                   at the end of the history                  at its return
//
// The history omits failed acquires: the table may contain the grant of a failed acquire, but
// the process gets no lock from it. The history also omits failed releases and reads, and commits
// that have written nothing. A commit with an unknown outcome takes effect once, at any time after
// its call, or never.
//
// # What the model requires
//
// The checker assigns to each operation an instant between its beginning and its end, and
// assumes that the operation takes effect at this instant. The checker accepts a history if it
// finds instants for which the following holds:
//
//	acquire   no process trusts a lock on the key; the token is higher than all earlier tokens
//	end       the process no longer trusts its lock
//	commit    the grant is the newest and is not released; one is added to the key's counter
//	read      the grant is the newest and is not released; the result is the counter
//	write     the target compares tokens: it refuses the write if and only if it has seen
//	          a higher token
//	look      the result is the counter
//
// In the model, a semaphore is a set of keys, one for each permit. acquire acquires one of them.
//
// # Faults
//
// Requests and replies are lost, repeated, or delayed by up to one and a half leases. Requests
// are throttled, conflict, or are refused because of the credentials. Some requests get a
// server error, before or after they are applied. Some processes die, others are paused for up
// to two leases. Clocks run at different rates. The methods of type process cause these faults,
// which depend only on the seed.
package histories
