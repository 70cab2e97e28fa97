// Package holders observes the holders of locks from outside, and reports which are live
// and which are dead.
//
//	observer.go   observes holders until each is known to be live or dead
//	watch.go      an observation in progress: when to read records next, what each read shows, and
//	              what the rest of the observation costs
//	reader.go     reads items by key or by a listing, whichever uses fewer read units, and session
//	              rows: a client renews one such row instead of the records of its locks
//	list.go       the records of a table: reads one by its key, or all, sorted by key; decodes an
//	              item and determines its kind, in any layout; distinguishes the grants of a key
//
// Package liveness contains the rule that decides when a holder is dead. Waiters use the same rule.
//
// The commands and the web page (package ui) both use GrantOf to distinguish grants, and Read
// to decode items. The page does not use an Observer: it remembers every key, and applies the
// rule of package liveness to each read. The command elect --watch observes one key with
// leasehold.Client.Watch, as users of the library do.
//
// A holder is undecided until the Observer finds it live or dead. Each failure has this effect:
//
//	a read fails                  repeated for ten seconds; then undecided holders are reported as unknown
//	a read is rejected            undecided holders are reported as unknown immediately
//	an item cannot be decoded     the holder's Observation contains the error
//	BatchGetItem is denied        items are read one by one
//	the time limit is reached     undecided holders are reported as unknown
//	a session's row is missing    the session's holder counts as dead after the default lease
//
// The package reads no command-line flags, does not prompt and does not print.
package holders
