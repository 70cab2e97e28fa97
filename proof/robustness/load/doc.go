// Package load holds thousands of locks, waits with thousands of goroutines, and acquires
// hundreds of thousands of times: nothing is lost, and no resource leaks.
//
// Tests of trust run in virtual time, where a slow machine cannot fail them. Tests of
// sockets use real ones.
//
//	LEASEHOLD_LOCKS    locks that one client holds (10000)
//	LEASEHOLD_CYCLES   acquisitions of each kind (100000)
//	LEASEHOLD_WAITERS  goroutines that wait for one key (1000)
//
// Under the race detector the defaults are a part of these.
package load
