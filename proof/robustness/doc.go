// Package robustness tries the lock as hard as a machine can: histories under a
// checker, processes killed and paused, loads, and leaks. It is tests alone, in a
// module of its own. docs/internals/reliability.md says what each has tried, how often, and
// what it found.
package robustness
