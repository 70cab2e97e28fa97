// Package renewals schedules the renewals of a client: which lease is renewed when, and how
// many leases are renewed at the same time. It knows neither DynamoDB nor locks: a lease is
// a function that sends one attempt and returns its outcome. A place is a slot for one
// attempt in flight.
//
//	         due            a place is free, and the pace allows it
//	later ────────► ready ────────────────────────────────────► sending
//	  ▲                                                            │
//	  └─── next one: after a period, or after a pause if it failed ┘
//
// Among the leases that are due, the one with the least trust left is sent first.
// A lease needs a goroutine only while its attempt is in flight.
//
// Attempts that hang must not block the others. So an attempt that has had no
// answer for a quarter of its deadline gives up its place to another. Leases whose
// last attempt had no answer get at most half of the places. In total, at most
// four times as many attempts are in flight as there are places.
//
// If the table throttles, a pace limits the renewals per second to the number that the table
// accepts. Then, too, the lease with the least trust left goes first. No lease is lost as
// long as the table accepts one renewal of each within its trust. While other leases are
// due, leases whose last attempt was throttled get only a fifth of the pace: in a hot
// partition, every attempt is throttled.
package renewals
