// Package robustness contains long and destructive tests of the lock: histories under a
// checker, processes that are killed and paused, loads, and leaks. It contains only tests,
// and is a module of its own. docs/internals/reliability.md describes each test, how often
// it has run, and what it has found.
package robustness
