// Package eventtest runs a process that goes through everything that a client of package
// leasehold has events for, and returns the totals. Adapters for metrics are tested against
// them.
package eventtest
