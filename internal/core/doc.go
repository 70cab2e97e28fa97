// Package core contains the parts of a client that many internal packages use. [Env]
// contains the table, the settings, the clocks and the sender of requests. [Running] counts
// the calls for which Close waits. The package also defines the errors of locks that have
// ended. For each client, the root package first creates one Env. It then creates one value of
// each other type in this chain, from left to right, and passes the Env to it:
//
//	core.Env → lease.Leases → acquire.Keys → hold.Holds → liveness.Observer → acquire.Acquirer
//
// These types call the root package through three fields of the Env. The function Report receives
// events. The function Kept is called when the client holds one more lock without a session. The
// methods of [Errors] make the errors whose types are public. The internal function that finds out
// why an operation failed calls one of these methods, and its callers return the error unchanged.
package core
