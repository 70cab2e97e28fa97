// Package store chooses the lock table of a command, opens it, and names it in messages.
//
// A setting comes from a flag or, if the flag is not given, from an environment variable
// LEASEHOLD_*. If no setting names a store, the command may use a default local store. From the
// settings, the package derives a Target: the table, its location and the layout of its records
// (target.go).
//
// There are two kinds of store. A table in DynamoDB is reached with the SDK's configuration
// (connect.go). Its credentials are loaded again if DynamoDB rejects them (credentials.go).
// A local store is a table in a file on this machine, which package localdynamo serves. A
// local store can be the default store (local.go). The package does not know what the locks
// are for. It observes requests and reports to the user through the functions in an
// Opening, which its callers set.
//
// Wherever it can, the package fails before any request. It refuses a setting that is empty,
// contradicts another setting, or cannot work (failure.MisuseError). It does not guess, because a
// guess could choose a store that the user does not expect:
//
//   - A named file must exist, unless the command creates it.
//   - There is no default store if a setting points to AWS.
//   - If the machine has a store for all its users, only that store can be the default.
//   - Open refuses a table whose layout is not the one in the settings, unless the command
//     checks or creates tables.
package store
