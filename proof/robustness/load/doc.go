// Package load tests the lock under load: one client holds thousands of locks, and keys are
// acquired hundreds of thousands of times. The tests check that no lock is lost and no
// resource leaks.
//
// Tests that depend on deadlines run in virtual time (testing/synctest), so that they do
// not fail on a slow machine. Tests of connections use real sockets.
//
//	LEASEHOLD_LOCKS   number of locks that one client holds (10000)
//	LEASEHOLD_CYCLES  number of acquisitions of each kind (100000)
//
// Under the race detector the defaults are lower.
package load
