// Package load holds thousands of locks, waits with thousands of goroutines, and
// acquires hundreds of thousands of times: nothing is lost, and nothing is left
// behind.
//
// What is claimed of trust is tried in virtual time, where a slow machine cannot
// fail it. What is claimed of sockets is tried on real ones.
//
//	LEASEHOLD_LOCKS    locks that one client holds (10000)
//	LEASEHOLD_CYCLES   acquisitions of each kind (100000)
//	LEASEHOLD_WAITERS  goroutines that wait for one key (1000)
//
// Under the race detector the defaults are a part of these.
package load
