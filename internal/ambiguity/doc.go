// Package ambiguity plays every operation with every fate of its first two
// requests, and holds what comes of it to docs/ambiguity.md: what the caller
// sees, what the record shows, and what happens by itself later. It is tests
// alone.
//
//	go test ./internal/ambiguity                                                    every cell: ten seconds on two idle cores
//	go test -run 'TestEveryAmbiguityIsAsWritten/^commit$' ./internal/ambiguity -v   one operation, cell by cell
//	go test ./internal/ambiguity -rewrite                                           writes the page anew, to be read as a diff
//
// Under the race detector it plays a fifth of the cells, and compares none with
// the page.
//
// internal/attempts has the same for three attempts of a bare sequence. Here is
// what each operation makes of it, for users.
package ambiguity
