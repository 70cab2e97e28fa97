// Package eventtest runs a process that causes most kinds of events of package leasehold, and
// returns the totals. Adapters for metrics are tested against these totals.
package eventtest
