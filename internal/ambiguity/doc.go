// Package ambiguity plays every operation with every fate of its first two
// requests, and compares the results with tables.md: what the caller sees, what
// the record shows, and what happens later by itself. It contains tests only.
// docs/internals/ambiguity.md says what follows for users.
//
//	go test ./internal/ambiguity                                                    every cell: ten seconds on two idle cores
//	go test -run 'TestOutcomesOfLostRepliesMatchRecordedTables/^commit$' ./internal/ambiguity -v   one operation, cell by cell
//	go test ./internal/ambiguity -rewrite                                           writes tables.md anew, to be read as a diff
//
// Under the race detector it plays a fifth of the cells, and compares none with
// the page.
//
// internal/attempts has the same for three attempts of a bare sequence. Here is
// what each operation makes of it, for users.
package ambiguity
