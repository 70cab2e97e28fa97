// Package sources tests rules for every source file of the lock: what the file imports,
// which clock it reads, and how it calculates with durations.
package sources
