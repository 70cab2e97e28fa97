// Package core has what all parts of one client share: [Env] with its table, its settings,
// its clocks and its sender of requests; the calls that Close waits for; the errors that say
// how a lock has ended. The root makes one Env and passes it down:
//
//	core.Env → liveness.Observer → lease.Leases → acquire.Keys → hold.Holds → acquire.Acquirer
//
// Two interfaces lead up again. [Listener] is told what has happened, and never asked.
// [Errors] makes the errors whose types users know: an error is made once, where its reason
// is known, and is not changed on its way up.
package core
