// Package core contains the parts of a client that many internal packages use. [Env]
// contains the table, the settings, the clocks and the sender of requests. [Running] counts
// the calls for which Close waits. The package also defines the errors of locks that have
// ended. For each client, the root package first creates one Env. It then creates one value of
// each other type in this chain, from left to right, and passes the Env to it:
//
//	core.Env → lease.Leases → acquire.Keys → hold.Holds → liveness.Observer → acquire.Acquirer
//
// These types call the root package through two fields of the Env. The function Report receives
// events. The field [Errors] makes the errors whose types are public. The function that finds out
// why an operation failed makes the error with a method of Errors. Its callers return this error
// unchanged.
package core
