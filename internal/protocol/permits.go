package protocol

// KindSemaphore is the kind of a row that says how many permits there are.
const KindSemaphore = "semaphore"

// MostPermits is the most that a semaphore may have: their records are read by
// one request.
const MostPermits = 100

// Permits is how many may hold a semaphore at a time, as it is stored.
type Permits struct {
	N       int
	Most    int    // that N has ever been: above N there may be holders yet
	ID      string // of the row: the version that created it
	Version string
}

// Counting is a protocol that has keys for the permits of a semaphore.
type Counting interface {
	Protocol

	// PermitKey is the key of a permit, from 0, of the semaphore under key. It
	// is an ordinary lock.
	PermitKey(key string, permit int) Key

	// PermitRows spells the rows that say how many permits there are; nil: the
	// table says nothing of it, and every client goes by its own number.
	PermitRows() PermitRows
}

// PermitRows spells the rows that say how many permits a semaphore has. Nobody
// is ever granted one.
type PermitRows interface {
	// Key is where the row of the semaphore under key is.
	Key(key string) Key

	// Decode reads a row; a *DecodeError if it is not one of these.
	Decode(item Item) (Permits, error)

	// Create writes p where there is nothing.
	Create(k Key, owner string, p Permits) *Write

	// Replace writes p in the place of the row that shows version.
	Replace(k Key, owner, version string, p Permits) *Write
}
