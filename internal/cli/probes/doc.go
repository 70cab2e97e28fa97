// Package probes answers the HTTP requests to "leasehold elect --http". They come from
// readiness and liveness probes, load balancers and people.
//
//	GET /leader   200 while this process leads, else 503; the body names the leader
//	GET /live     503 while CMD runs and renewals are overdue, else 200
//
// GET /leader answers 200 only until trust in the lease ends. Another process can be elected
// only some time later. So at most one process at a time answers 200, whatever the network
// does:
//
//	             term      CMD             /leader            /live
//	campaigns    none      –               503, the leader    200
//	leads        trusted   runs            200                200
//	is overdue   trusted   runs            200                503
//	has lost     over      is stopped      503, unknown       503
//	resigns      over      has ended       503, unknown       200
//
// Renewals are overdue when so little time is left until the end of trust that the next
// renewal may come too late. No timer is involved: each probe compares the end of trust with
// the clock. So a process that was suspended answers correctly as soon as it continues.
//
// Answering a probe sends no request to the table. While this process campaigns, the body
// names the leader in the record that the campaign read last. This leader's term may have ended
// since. The leader is unknown until the campaign has read the record for the first time.
//
// A Seat records whether this process leads, and answers the probes. Its method answers
// implements the table above. Package serve chooses the address.
package probes
