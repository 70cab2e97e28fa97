// Package eventtest tests adapters that convert events of package leasehold to metrics or
// spans. Live runs a client that emits most kinds of events, and returns the totals of these
// events. Exercise compares the series of a metrics adapter with the totals.
package eventtest
