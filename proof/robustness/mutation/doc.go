// Mutation breaks the lock in one place at a time, and asks its tests.
//
//	go run ./mutation                          every mutant: hours
//	go run ./mutation -sample 300 -seed 7      300 of them, the same again for the same seed
//	go run ./mutation -only 'releaser\.go'     those of one file
//	go run ./mutation -list                    what there is
//
// # A mutant
//
// One place of one file is changed: a comparison by one or turned round, one side of
// an "and" or "or" left out, a condition negated, plus for minus, min for max, a
// statement taken out. The file of the work tree stays as it is: the compiler is given
// another one in its place (-overlay).
//
// # Who is asked
//
// The tests whose code runs through that place, which is measured once, test by test:
// those of its own package first, then those of the lock, the recipes and the simulation,
// the quick ones first. The first that fails, or does not end, kills the mutant.
//
// # What survives
//
// Either a rule without a test, which is a bug of the tests, or a change that nobody can
// notice. The second kind is listed in harmless.txt, each with its reason. A line there
// that no mutant has any more fails the run.
package main
