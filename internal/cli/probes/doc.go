// Package probes serves the state of leasehold elect (--http) to readiness and liveness
// probes, load balancers and people.
//
//	GET /leader   200 while this process leads, else 503; the body names the leader
//	GET /live     503 while CMD runs and renewals are overdue, else 200
//
// Both depend on trust, which ends a margin before another process can be elected. So at
// most one of two processes answers 200, whatever the network does:
//
//	             term      CMD             /leader            /live
//	campaigns    none      –               503, the leader    200
//	leads        trusted   runs            200                200
//	is overdue   trusted   runs            200                503
//	has lost     over      is stopped      503, nobody        503
//	resigns      over      has ended       503, nobody        200
//
// Overdue means that less trust is left than renewals need to arrive in time. It is
// computed at each request rather than by a timer, so that a process that was paused
// answers correctly at once.
//
// An answer needs no request to the table. The body names the leader that the campaign saw
// last, whose term may have ended since. Before the first read, the leader is unknown.
//
// standingAt is the pure function behind this table. A Seat knows the state of the process
// and serves it. Package serve chooses the address.
package probes
