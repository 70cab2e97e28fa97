package protocol

// Waiter is who stands in the line of a record.
type Waiter struct {
	Grant string // the id of the grant under which it will hold the key
	Owner string
}

// Place is a place in the line of a record.
type Place struct {
	Index int
	Of    Waiter
}

// The most of a record's line: without data, the record stays below a kilobyte, which
// costs one write unit (AWS, "Read and write capacity mode").
const (
	MostWaiters   = 32
	MostLineBytes = 640
	waiterBytes   = 16 + 17 + 1 // of an entry without the owner's name
)

// LastPlaces are for those who have waited: else whoever comes back at once takes the place
// that it has just left.
const LastPlaces = 3

// HasRoom reports whether so many more like that one may stand in line.
func (r Record) HasRoom(more int, like string) bool {
	bytes := func(owner string) int { return waiterBytes + max(len(owner)-1-clientIDLen, 0) }
	all := more * bytes(like)
	for _, w := range r.Waiters {
		all += bytes(w.Owner)
	}
	return len(r.Waiters)+more <= MostWaiters && all <= MostLineBytes
}
