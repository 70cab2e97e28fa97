// Package store is where the locks are: it chooses the lock table, opens it, and says
// what it is called.
//
// It knows the settings (Settings: a flag, then a variable LEASEHOLD_*, then a default
// if neither names a store), and which of them said what. It knows the two kinds of
// table: one in DynamoDB (connect.go), reached as the SDK is configured, with credentials
// that are loaded again once they are refused (credentials.go), and one in a
// file of this machine, served by package localdynamo, which may be the one that is
// used if nobody names one (local.go). It does not know what is done with the locks,
// who is told of requests, or how anything is printed: who opens a store hands that in
// (Opening).
//
// It fails before anything is sent wherever it can. A setting that is empty,
// contradictory or leads nowhere is refused (package misuse), for whoever guesses may
// lock in another store than the user thinks: so a file that is named must be there,
// unless the command makes it; none is chosen if a setting points to AWS; and the
// machine's store, once there, is used or nothing is. A table of another layout is
// refused by Open, unless the caller mends it.
package store
