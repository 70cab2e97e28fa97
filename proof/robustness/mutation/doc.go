// Mutation breaks the lock in one place at a time, and runs its tests.
//
//	go run ./mutation                          every mutant: hours
//	go run ./mutation -sample 300 -seed 7      300 of them, the same again for the same seed
//	go run ./mutation -only 'freeing\.go'     the mutants of one file
//	go run ./mutation -list                    list the mutants
//
// # A mutant
//
// One place of one file is changed: a comparison by one or turned round, one side of
// an "and" or "or" left out, a condition negated, plus for minus, min for max, a
// statement taken out. The file of the work tree stays as it is: the compiler is given
// another one instead (-overlay).
//
// # Which tests run
//
// The tests whose code runs through that place, which is measured once, test by test:
// the tests of its own package first, then of the lock, the recipes and the simulation,
// quick ones first. The first that fails, or does not end, kills the mutant.
//
// # What survives
//
// Either a rule without a test, which is a bug of the tests, or a change without an
// observable effect. The second kind is listed in harmless.txt, each with its reason. A
// line there without a mutant fails the run.
package main
