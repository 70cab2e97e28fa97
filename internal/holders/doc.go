// Package holders observes the holders of locks from outside, and reports which are live
// and which are dead.
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
// Package liveness contains the rule for when a holder is dead. Waiters use it as well.
//
// The commands and the web page (package ui) both use GrantOf to tell grants apart, and
// Read to decode items. The page does not use an Observer: it remembers every key, and
// applies the rule to each reading. The command elect --watch observes one key with
// leasehold.Client.Watch, as users of the library do.
//
// What each failure does:
//
//	a read fails                  the read is repeated for ten seconds; then all other holders are unknown
//	a read is refused             all other holders are unknown at once
//	an item cannot be decoded     its holder has that error
//	BatchGetItem is denied        items are read one by one
//	the time limit is reached     all other holders are unknown
//	a session's row is missing    its holder counts as dead after the default lease
//
// The package knows no flags, and neither prompts nor prints.
package holders
