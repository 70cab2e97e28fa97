// Package sources tests what must hold of every file of the lock: what it imports, which clock
// it reads, and how it calculates with durations.
package sources
