// Package store chooses the lock table, opens it, and names it.
//
// It knows the settings and the source of each (Settings: a flag, then a variable
// LEASEHOLD_*, then a default if neither names a store). From these it derives a Target:
// the table, its location, and the form of its records (target.go). It knows the two kinds
// of table. One is in DynamoDB (connect.go), reached as the SDK is configured, with
// credentials that are loaded again once they are refused (credentials.go). The other is in
// a file of this machine, served by package localdynamo, and may be the default (local.go).
// The package does not know the purpose of the locks, the observers of requests, or how
// anything is printed. Its callers pass functions for these (Opening).
//
// Wherever it can, it fails before any request. It refuses a setting that is empty,
// contradictory or leads nowhere (failure.MisuseError), since a guess could lead to another
// store than the user expects. So a named file must exist, unless the command creates it.
// No default is chosen if a setting points to AWS. The machine's store, if it exists, is
// the only default. Open refuses a table of another layout, unless the caller repairs
// tables.
package store
