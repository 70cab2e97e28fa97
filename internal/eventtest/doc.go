// Package eventtest is a process that lives through everything that a client of
// package leasehold has events for, and says what came of it: what its adapters
// for metrics are held to.
package eventtest
