// Command mutation measures how well the tests check the code of the lock (mutation testing).
// It changes the code in one place at a time, and checks that a test then fails.
//
//	go run ./mutation                          every mutant: hours
//	go run ./mutation -sample 300 -seed 7      300 mutants; the same seed selects the same mutants
//	go run ./mutation -only 'freeing\.go'     the mutants of one file
//	go run ./mutation -list                    list the mutants
//
// # A mutant
//
// A mutant is the code with one change: another operator in a comparison (< becomes <= or
// >=), one side of an "and" or "or" left out, a condition negated, plus for minus, min for
// max, or a statement removed. The files of the work tree are not changed: the compiler
// gets a changed copy of one file (-overlay).
//
// # Which tests run
//
// A mutant is tested only by the tests that execute the changed code. To find these tests, a
// first run measures the coverage of each test. The tests of the mutant's own package run
// first, then the tests of other packages: of the lock, the recipes and the simulation. Within
// a package, quick tests run first. A test that fails or does not end detects (kills) the
// mutant, and no further tests run for it.
//
// # What survives
//
// A mutant that no test kills shows a gap in the tests, unless the change has no observable
// effect. harmless.txt lists the mutants without an observable effect, each with the reason. The
// run fails if a line of harmless.txt names no mutant.
package main
