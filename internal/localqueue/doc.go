// Package localqueue contains the queues in which the goroutines of one client wait for
// keys. There is one queue for each key. At most one goroutine has the turn of a key: it
// acquires the key or holds it. The remaining goroutines wait in the queue and send no
// requests.
//
//	               its turn                granted
//	in the queue ───────────► acquiring ───────────────► holding
//	      │                         │ gives up                 │ ends
//	      │                         ▼                          ▼
//	      │                     the next waiter has its turn
//	      │                                                    │
//	      └───────────► holding, by a hand-over ◄──────────────┘
//
// While goroutines hand a key over to each other, the key never becomes free for other processes.
// So after several hand-overs in a row, the holder frees the key, and the next waiter of this
// process gets its turn after a delay. A waiter in another process reads the record at least once
// during this delay, and finds the key free.
//
// Package localqueue does not use DynamoDB, and does no I/O. The caller of the package defines
// the types of grants and of the data that a hand-over needs. The functions of the package do
// not block: the goroutines wait on the channels of their [Waiter].
package localqueue
