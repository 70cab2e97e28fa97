// Package probes answers who asks how leasehold elect stands (--http): readiness and
// liveness probes, load balancers, people.
//
//	GET /leader   200 while this process leads, else 503; the body says who leads
//	GET /live     503 while CMD runs and renewals are overdue, else 200
//
// Both go by trust, which ends a margin before anybody else can be elected. So of two
// processes one at most answers 200, whatever the network does:
//
//	             term      CMD             /leader            /live
//	campaigns    none      –               503, who leads     200
//	leads        trusted   runs            200                200
//	is overdue   trusted   runs            200                503
//	has lost     over      is stopped      503, nobody        503
//	resigns      over      has ended       503, nobody        200
//
// Overdue: less trust is left than renewals leave that land in time. It is asked, and not
// waited for: a process that stood still is told the truth when it is asked first.
//
// Nothing is sent to the table for an answer. Who leads is what the campaign has seen
// last: it may have ended since, and nobody is known before the first look.
//
// standingAt decides, as a pure function; a Seat knows what it is asked about, and
// answers. Where it listens is package serve's to know.
package probes
