// Package ambiguity tests what a caller learns when requests are lost, late or rejected. It
// plays every operation with every combination of faults on the operation's first two
// requests. It compares the results with tables.md: what the call returns, what the record
// contains, and what the client does later by itself. The package contains only tests.
// docs/internals/ambiguity.md explains the results to users.
//
//	go test ./internal/ambiguity                                                    every cell: ten seconds on two idle cores
//	go test -run 'TestOutcomesOfLostRepliesMatchRecordedTables/^commit$' ./internal/ambiguity -v   one operation, cell by cell
//	go test ./internal/ambiguity -rewrite                                           writes tables.md anew, to be read as a diff
//
// Under the race detector it plays a fifth of the cells, and does not compare them with
// tables.md.
//
// The tests of internal/attempts play the same faults on three attempts of a bare sequence,
// without an operation around it.
package ambiguity
