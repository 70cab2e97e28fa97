// Package arguments parses flags and arguments that several commands have, and environment
// variables that replace them. It refuses mistakes in the same words for all commands.
//
//	arguments.go   KEY, PREFIX or nothing; whether CMD follows; --data, and flags of a duration
//	environment.go the owner and the lease if no flag sets them; the given flags that name the store
//
// It opens nothing and prints nothing. Package store chooses the store.
package arguments
