// Package ownrights ends a process that has the rights of another user than the one who
// started it, as by a set-user-ID bit: everything that leasehold run does, up to CMD
// itself, is chosen by arguments and variables of whoever starts it. It runs while the
// program's packages are initialized, before any that look at them.
package ownrights

// NotRun is the exit code of a process of leasehold run that did not become CMD, and of
// leasehold where CMD was not run: nothing was done.
const NotRun = 125
