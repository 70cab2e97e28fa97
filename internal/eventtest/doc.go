// Package eventtest tests adapters that convert events of package leasehold to metrics or
// spans. Live runs a client that emits most kinds of events, and returns their totals. Exercise
// compares the series of a metrics adapter with these totals.
package eventtest
