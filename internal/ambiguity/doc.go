// Package ambiguity tests what each call of a lock client returns when its requests are lost,
// late or rejected. For each operation, tables.md has a table. A cell of the table shows the
// result of one combination of faults on the operation's first two requests. The result is what
// the call returns, what the record contains, and what another client finds later. The package
// runs ("plays") every cell, and compares its result with tables.md. The package contains only
// tests. docs/internals/ambiguity.md explains the results to users.
//
//	go test ./internal/ambiguity           plays every cell: ten seconds on two idle cores
//	go test ./internal/ambiguity -rewrite  rewrites tables.md: review the changes as a diff
//	go test -run 'TestOutcomesUnderFaultsMatchGoldenFiles/^commit$' ./internal/ambiguity -v
//	                                       plays the cells of one operation, and prints them
//
// Under the race detector and with the flag -short, the package plays a fifth of the cells, and
// does not compare the results with tables.md.
//
// The tests of internal/attempts play the same faults on a bare sequence of three attempts,
// outside any operation of a client.
package ambiguity
