// Package core contains what all parts of one client share: [Env] with its table, settings,
// clocks and sender of requests; the calls that Close waits for; and the errors of locks that
// have ended. The root package makes one Env and passes it down:
//
//	core.Env → liveness.Observer → lease.Leases → acquire.Keys → hold.Holds → acquire.Acquirer
//
// Through two interfaces, the parts call the root package. [Listener] receives reports, and
// returns nothing. [Errors] makes the errors whose types users know. An error is made once,
// where its reason is known, and then returned unchanged.
package core
