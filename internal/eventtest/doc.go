// Package eventtest runs a process that goes through everything for which package leasehold
// has events, and returns the totals. Adapters for metrics are tested against them.
package eventtest
