// Package sources tests rules for every file of the lock: what it imports, which clock it
// reads, and how it calculates with durations.
package sources
