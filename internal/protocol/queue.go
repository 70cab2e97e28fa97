package protocol

// Waiter is a waiter in the queue of a record.
type Waiter struct {
	Grant string // id of the grant by which the waiter will hold the key
	Owner string
}

// QueueEntry is an entry in the queue of a record: its index, from 0, and its waiter.
type QueueEntry struct {
	Index int
	Of    Waiter
}

// MostWaiters is the maximum number of entries in the queue of a record. If owner names are
// short, a record with a full queue and no data has less than a kilobyte. Each write of
// such a record costs one write unit (AWS, "Read and write capacity mode").
const MostWaiters = 16

// LastPlaces is the number of places in a queue that only long waiters may take: those that
// have waited longer than most waiters in the queue. Otherwise a client that has just held
// the key could join again at once, and keep long waiters out.
const LastPlaces = 3

// MostWaitersBytes is the maximum number of bytes that a full queue adds to a record. An
// entry needs the bytes of the owner's name, 16 for the grant id, 17 for the client id, and
// 1 as an element of a list.
const MostWaitersBytes = MostWaiters * (16 + 17 + 1 + LongestOwner)
