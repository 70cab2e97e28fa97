// Package sources tests rules for the source files of leasehold: which packages they import,
// which clocks they read, and how they calculate with durations.
package sources
