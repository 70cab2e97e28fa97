package protocol

// Waiter is an entry of a record's queue.
type Waiter struct {
	Grant string // the id of the grant under which the waiter will hold the key
	Owner string
}

// QueueEntry is the position of an entry in a record's queue.
type QueueEntry struct {
	Index int
	Of    Waiter
}

// MostWaiters is the maximum number of entries in a record's queue. If owner names are
// short, a record with a full queue and no data stays below a kilobyte. Such a record costs
// one write unit (AWS, "Read and write capacity mode").
const MostWaiters = 16

// LastPlaces is the number of places kept for waiters that have waited longer than most in
// the queue. Otherwise a client that comes back at once would take the place that it has
// just left.
const LastPlaces = 3

// MostWaitersBytes is the maximum number of bytes that a full queue adds to a record. An
// entry takes 16 bytes for the grant id, 17 for the client id, 1 as a list element, and the
// owner's name.
const MostWaitersBytes = MostWaiters * (16 + 17 + 1 + LongestOwner)
