// Package store chooses the lock table, opens it, and names it.
//
// It knows the settings (Settings: a flag, then a variable LEASEHOLD_*, then a default if
// neither names a store), and the source of each setting. They lead to a Target: the table,
// its place, and what its records look like (target.go). It knows the two kinds of table.
// One is in DynamoDB (connect.go), reached as the SDK is configured, with credentials that
// are loaded again once they are refused (credentials.go). The other is in a file of this
// machine, served by package localdynamo, and may be the default (local.go). It does not
// know the purpose of the locks, the observers of requests, or how anything is printed: its
// callers pass functions for these (Opening).
//
// It fails before anything is sent wherever it can. A setting that is empty, contradictory
// or leads nowhere is refused (package misuse), since a guess could lock in another store
// than the user expects. So a named file must exist, unless the command creates it. No
// default is chosen if a setting points to AWS. The machine's store, if it exists, is the
// only default. Open refuses a table of another layout, unless the caller repairs tables.
package store
