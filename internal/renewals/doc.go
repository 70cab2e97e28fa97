// Package renewals decides which lease of a client is renewed when, and how
// many at a time. It knows neither DynamoDB nor locks: a lease is a function
// that sends one attempt and says what came of it.
//
//	         due             a place, and the pace allows it
//	later ────────► ready ───────────────────────────────────► sending
//	  ▲                                                           │
//	  └── the next after a period, or after a pause if it failed ─┘
//
// Of the leases that are due, the one with the least trust left goes first. A
// lease costs a goroutine only while an attempt of its is being sent.
//
// An attempt that has had no answer for a quarter of its deadline gives up its
// place, so that others are sent beside it; and leases whose last attempt had
// no answer have half of the places at most, so that keys whose requests hang
// take none from the others. However many hang, no more than four times the
// places are in flight.
//
// A table that throttles is sent to at a pace that follows what it takes: who
// is sent then is decided by the trust left, and none is lost as long as the
// table takes one renewal of each within its trust. Those whose last
// attempt was throttled, as every one is of a hot partition, have a fifth of
// the pace while others are due.
package renewals
