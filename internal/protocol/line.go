package protocol

// Waiter is an entry of a record's queue.
type Waiter struct {
	Grant string // the id of the grant under which it will hold the key
	Owner string
}

// Place is the position of an entry in a record's queue.
type Place struct {
	Index int
	Of    Waiter
}

// The limits of a record's queue. Within them a record without data stays below a kilobyte,
// which costs one write unit (AWS, "Read and write capacity mode").
const (
	MostWaiters   = 32
	MostLineBytes = 640
	waiterBytes   = 16 + 17 + 1 // an entry without the owner's name
)

// LastPlaces are reserved for clients that have waited: otherwise a client that comes back
// at once would take the place that it has just left.
const LastPlaces = 3

// HasRoom reports whether the queue has room for so many more entries of that owner's
// length.
func (r Record) HasRoom(more int, like string) bool {
	bytes := func(owner string) int { return waiterBytes + max(len(owner)-1-clientIDLen, 0) }
	all := more * bytes(like)
	for _, w := range r.Waiters {
		all += bytes(w.Owner)
	}
	return len(r.Waiters)+more <= MostWaiters && all <= MostLineBytes
}
