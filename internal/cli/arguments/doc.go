// Package arguments is what is typed behind a command, and what the environment says in
// its place: flags and arguments that several commands have are read here, and refused in
// the same words.
//
//	arguments.go   KEY, PREFIX or nothing; whether CMD follows; --data
//	duration.go    flags of a duration
//	environment.go who holds, for how long, if no flag says it; the given flags that say where the locks are
//
// It opens nothing and prints nothing. Where the locks are is chosen by package store.
package arguments
