// Package renewals schedules the renewals of a client: which lease is renewed when, and how many
// leases are renewed at the same time. It knows neither DynamoDB nor locks: it renews a lease by a
// call of a function, which sends one attempt and returns the attempt's outcome. An attempt in
// flight occupies one of a fixed number of slots, with the exceptions below.
//
//	         due            a slot is free, and the pace allows it
//	later ────────► ready ────────────────────────────────────► sending
//	  ▲                                                            │
//	  └─── next one: after a period, or after a pause if it failed ┘
//
// The client trusts each lease until a certain time. If several leases are due, the lease with the
// earliest such time is renewed first. A lease needs a goroutine only while its attempt is in
// flight.
//
// Attempts that hang must not block other attempts. So an attempt that has had no answer for a
// quarter of its deadline loses its slot, but stays in flight. Leases whose last attempt had no
// answer or was throttled get at most half of the slots. At most four times as many attempts are in
// flight as there are slots. Attempts that wait for another write of the same lock have no slot,
// and do not count toward this limit.
//
// If the table throttles, a pace limits the renewals per second to the number that the table
// accepts. No lease is lost as long as the table accepts at least one renewal of each lease before
// the client stops trusting that lease.
//
// Leases whose last attempt was throttled may be in a hot partition, where DynamoDB throttles every
// attempt. So while other leases are due, at most every fifth attempt is for one of these leases.
package renewals
