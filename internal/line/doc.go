// Package line keeps the goroutines of one client in order, key by key: one of
// them has the key's turn, to seek the key or to hold it; the others wait in line
// without sending anything.
//
//	                  its turn                 granted
//	waiting in line ───────────► seeking ─────────────────► holding
//	      │                         │ gives up                 │ ends
//	      │                         ▼                          ▼
//	      │                     the next in line has its turn
//	      │                                                    │
//	      └───────────► holding, by a hand-over ◄──────────────┘
//
// A key that is handed over from goroutine to goroutine never comes free for
// other processes. So after some hand-overs in a row the next in line gets its
// turn with a delay: as long as the longest pause of any process that watched
// those holders, within which it looks at the key and finds it free.
//
// It knows nothing of DynamoDB, records or leases: keys, grants and what is
// reported of a holder are the caller's types. It does no I/O, and nothing in it
// waits but its callers, on the channels of their [Waiter].
package line
