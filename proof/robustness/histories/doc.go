// Package histories has clients share locks over a network that misbehaves,
// writes down what each was told and when, and asks a checker of
// linearizability, porcupine, whether a lock could have said all that. It is
// tests alone.
//
//	go test ./histories                                                      20,000 histories; 500 with -race
//	LEASEHOLD_HISTORIES=1000000 go test -timeout 0 ./histories               more
//	LEASEHOLD_HISTORY=4711 go test -run '^TestMutexHistories$' ./histories   one again
//
// The simulation, internal/simulation, looks at every request, and knows what
// stands in each record and why. This package knows nothing of records: it has
// what users see, and a model of a lock that fits on a page (model). So an error
// in how the protocol is understood, which the simulation may share, is none here.
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
// nobody believes in what it took. Nor is a release that failed. A commit whose
// outcome is unknown takes effect at any time after its call, once, or never.
//
// # What the model asks
//
// That an instant can be found for each operation, within its time, so that they
// happen one after the other and
//
//	acquire   nobody believes in the key; the token is higher than any before
//	end       ends that belief
//	commit    adds one to the key's counter; the grant is the newest, and not released.
//	read      shows the counter; the same of the grant
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
// with a server error before and after they landed. Processes die, and stand still for up to two leases; clocks go at rates
// of their own. Everything is drawn from the seed (network, process).
package histories
