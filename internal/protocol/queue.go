package protocol

// Waiter is an entry of a record's queue.
type Waiter struct {
	Grant string // the id of the grant under which it will hold the key
	Owner string
}

// QueueEntry is the position of an entry in a record's queue.
type QueueEntry struct {
	Index int
	Of    Waiter
}

// MostWaiters is how many entries a record's queue has at most. If names of owners are
// short, a record with all of them, and without data, stays below a kilobyte, which costs one
// write unit (AWS, "Read and write capacity mode").
const MostWaiters = 16

// LastPlaces are left for waiters that have waited longer than most in the queue. Otherwise a
// client that comes back at once would take the place that it has just left.
const LastPlaces = 3

// MostWaitersBytes is the most that a full queue adds to a record.
const MostWaitersBytes = MostWaiters * (16 + 17 + 1 + LongestOwner)
