// Package holders observes holders from outside, and reports which are live and which are
// dead.
//
//	observer.go   observes holders until their state is known
//	watch.go      an observation in progress: when to read next, and what a reading shows
//	plan.go       the cost of an observation
//	reader.go     reads items again, in the way that uses fewer read units
//	sessions.go   the rows that are renewed instead of many records
//	found.go      the kind of an item of the table, in any layout
//	find.go       the record of one of several holders of a key
//	list.go       the records of a table, in order of key
//
// The rule for when a holder is dead is in package liveness. Waiters use it as well.
//
// The command and the page share how grants are told apart, and what an item is.
// The page remembers every key, and judges each reading by the rule. elect --watch observes
// one key, as users of the library do (leasehold.Client.Watch).
//
// What each failure does:
//
//	a reading fails             it is repeated for ten seconds, then the other holders are unknown
//	it is refused               they are unknown at once
//	an item cannot be read      its holder has that error
//	BatchGetItem is denied      items are read one by one
//	the limit is over           the other holders are unknown
//	a session's row is gone     its holder is dead after the lease of a client that has the default
//
// It knows no flags, prompts for nothing, and prints nothing.
package holders
