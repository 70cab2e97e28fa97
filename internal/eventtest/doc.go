// Package eventtest tests adapters that turn the events of package leasehold into metrics or
// spans. Live runs a process that causes most kinds of events, and returns their totals.
// Exercise tests an adapter for metrics against these totals.
package eventtest
