// Package eventtest runs a process that causes every kind of event that package leasehold
// has, and returns the totals. Adapters for metrics are tested against these totals.
package eventtest
