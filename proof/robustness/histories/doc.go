// Package histories has clients share locks over a network that misbehaves,
// records each result with its time, and asks a checker of linearizability,
// porcupine, whether a lock could have returned them all. It has only tests.
//
//	go test ./histories                                                      20,000 histories; 500 with -race
//	LEASEHOLD_HISTORIES=1000000 go test -timeout 0 ./histories               more
//	LEASEHOLD_HISTORY=4711 go test -run '^TestMutexHistories$' ./histories   one again
//
// The simulation, internal/simulation, checks every request, and knows what
// each record contains and why. This package knows nothing of records: it has
// only what users see, and a model of a lock that fits on a page (model). So it
// does not share the simulation's understanding of the protocol, or its errors.
//
// # What is in a history
//
//	operation         takes time from                               to
//	acquire           the call                                      its return
//	end               the end of trust: released, lost, expired     the same instant
//	release           the call                                      its return with nil
//	commit, read      the call                                      its return; of unknown outcome: never
//	write             likewise
//	look              the end of the history
//
// An acquire that failed is not in it: it may have taken effect or not, and
// no process believes in its grant. A failed release is left out too. A commit whose
// outcome is unknown takes effect at any time after its call, once, or never.
//
// # What the model requires
//
// Each operation has an instant, within its time, so that all happen one after the
// other and
//
//	acquire   no process believes in the key; the token is higher than any before
//	end       ends that belief
//	commit    adds one to the key's counter; the grant is the newest, and not released.
//	read      shows the counter; the grant is as for a commit
//	write     goes to a target that compares tokens: it is refused if it has seen a higher one,
//	          and only then
//	look      shows the counter
//
// A semaphore is as many such keys as it has permits: acquire takes one of them.
//
// # What misbehaves
//
// Requests and replies are lost, late by up to a lease and a half, repeated,
// throttled, in conflict, refused for credentials that the next one has, and answered
// with a server error before and after they landed. Processes die, and are paused for up
// to two leases; clocks run at rates of their own. Everything is drawn from the seed
// (network, process).
package histories
