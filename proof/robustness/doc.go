// Package robustness contains long and destructive tests of the lock. They check histories
// of calls for linearizability, kill and suspend processes, put the lock under load, and
// search for leaks. The package contains only tests and their tools, and is in the module
// proof. docs/internals/reliability.md describes each test, how often it has run, and what
// it has found.
package robustness
