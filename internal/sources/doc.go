// Package sources tests rules for every source file of leasehold: which packages it imports,
// which clocks it reads, and how it calculates with durations.
package sources
