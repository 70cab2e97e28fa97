// Package probes answers the HTTP requests to "leasehold elect --http". They come from
// readiness and liveness probes, load balancers and people.
//
//	GET /leader   200 while this process leads, else 503; the body names the leader
//	GET /live     503 while CMD runs and renewals are overdue, else 200
//
// The reply to GET /leader is 200 only while this process trusts its lease. Another process can be
// elected only after this trust has ended. So at most one process at a time replies with 200,
// whatever the network does:
//
//	this process              its trust   CMD              /leader           /live
//	campaigns                 none        –                503, the leader   200
//	leads, renews in time     lasts       runs             200               200
//	leads, renewals overdue   lasts       runs             200               503
//	has lost its lease        has ended   must stop        503, unknown      503
//	resigns                   has ended   has ended        503, unknown      200
//
// Renewals are overdue when the trusted time ends so soon that the next renewal may come too
// late. For each probe, this process compares the end of the trusted time with the clock. It
// uses no timer. So a process that was suspended answers correctly as soon as it continues.
//
// This process sends no request to the table in order to answer a probe. While this process
// campaigns, the body names the leader in the record that this process read last. That leader's
// term may have ended since the read. The leader is unknown until the campaign has read the
// record for the first time, and while the record shows the term that this process has lost.
//
// A Seat records whether this process leads, and answers the probes. The method Seat.answers
// implements the table above. Package serve chooses the address.
package probes
