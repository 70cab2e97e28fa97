// Package ownrights ends a process that has the rights of another user than the user who
// started it, as by a set-user-ID bit. Otherwise that user could choose, by arguments and
// variables, what leasehold run does with those rights. The package runs while the
// program's packages are initialized, before any package that reads arguments or variables.
package ownrights

// NotRun is the exit code of a process of leasehold run that did not become CMD, and of a
// leasehold that did not run CMD. Nothing was done.
const NotRun = 125
