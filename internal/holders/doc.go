// Package holders says what holders do, as one who looks on sees it: who is alive, and
// who is dead.
//
//	observer.go   observes holders until it is known
//	watch.go      an observation under way: when to read next, and what a reading shows
//	plan.go       what an observation will cost
//	reader.go     reads items again, in the way that uses fewer read units
//	sessions.go   the rows that are renewed in the place of many records
//	found.go      what an item of the table is, in any layout
//	find.go       the record of one of several holders of a key
//	list.go       the records of a table, in order of key
//
// When a holder is dead is not decided here: see package liveness, whose rule waiters
// go by as well.
//
// The command and the page share what is here: which grant is which, and what an item is.
// The page remembers every key, and judges each reading by the rule. elect --watch observes
// one key, as users of the library do (leasehold.Client.Watch).
//
// What each failure does:
//
//	a reading fails             it is repeated for ten seconds, then all who are left are unknown
//	it is refused               they are unknown at once
//	an item cannot be read      that is what is known of its holder
//	BatchGetItem is denied      items are read one by one
//	the limit is over           who is not known by then is unknown
//	a session's row is gone     its holder is dead after the lease of a client that has the default
//
// It knows no flags, asks nobody, and prints nothing.
package holders
