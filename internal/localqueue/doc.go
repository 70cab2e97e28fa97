// Package localqueue keeps a queue for each key in which the goroutines of one client wait.
// One of them has the key's turn, to acquire the key or to hold it. The others wait
// in the queue and send nothing.
//
//	               its turn                granted
//	in the queue ───────────► acquiring ───────────────► holding
//	      │                         │ gives up                 │ ends
//	      │                         ▼                          ▼
//	      │                     the next waiter has its turn
//	      │                                                    │
//	      └───────────► holding, by a hand-over ◄──────────────┘
//
// While goroutines hand a key over to each other, it never becomes free for other
// processes. So after some hand-overs in a row, the next in the queue gets its turn with a
// delay. The delay is the longest pause that a process makes between two reads of those
// grants: such a process reads the record meanwhile, and finds the key free.
//
// The package knows neither DynamoDB nor leases. The types of a grant, and of the data that
// a hand-over needs, are the caller's. The package does no I/O. Only its callers wait, on the
// channels of their [Waiter].
package localqueue
