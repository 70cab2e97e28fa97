package protocol

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// KindReadWrite is the kind of the row of a read/write lock, which one writer or
// several readers hold.
const KindReadWrite = "rw"

// Mode says what an entry of the row of a read/write lock is.
type Mode string

// Values of Mode.
const (
	ModePlain        Mode = ""              // a lock with one holder
	ModeRead         Mode = "read"          // one of several readers
	ModeWrite        Mode = "write"         // the writer
	ModeIntent       Mode = "intent"        // a writer that waits
	ModeReadersFirst Mode = "readers first" // a writer that has released, and lets readers go first
)

// IsReadWrite reports whether an item is the row of a read/write lock.
func IsReadWrite(item Item) bool {
	kind, ok := item["kind"].(*types.AttributeValueMemberS)
	return ok && kind.Value == KindReadWrite
}

// ReadWriting is a protocol whose table may have read/write locks.
type ReadWriting interface {
	Protocol

	// ReadWrite returns the protocol for a client that wants to read (ModeRead) or
	// to write (ModeWrite). With noWait, a writer does not let readers go first.
	ReadWrite(m Mode, noWait bool) Side

	// Entries returns the holders of a read/write lock, the longest holding
	// first, or one released record if there are none.
	Entries(item Item) ([]Record, error)
}

// Records reads what an item holds: of a read/write lock its Entries, of any other the
// one record.
func Records(p Protocol, item Item) ([]Record, error) {
	if rw, ok := p.(ReadWriting); ok && IsReadWrite(item) {
		return rw.Entries(item)
	}
	r, err := p.Decode(item)
	if err != nil {
		return nil, err
	}
	return []Record{r}, nil
}

// Side is the protocol of a read/write lock for one reader or one writer. A grant
// adds an entry to the row. Every other write changes only the entries that its
// Hold names. To read an entry, use Of.
type Side interface {
	Protocol

	// Of returns the protocol for the entry of one grant. Its Decode reads that
	// entry, or the holder that has replaced it.
	Of(grant string) Protocol

	// Blockers returns the entries of item that keep a grant from being made at
	// now. If there are none, a grant can be made.
	Blockers(item Item, now time.Time) (Blockers, error)

	// Intend writes the intent to be granted. It replaces this client's earlier
	// intents and dead ones. Nil: this mode needs no intent, or these blockers do
	// not allow one.
	Intend(by Blockers, i Grant) *Write

	// Sweep removes dead readers if none of them has changed. It changes no other
	// entry.
	Sweep(key Key, dead []Record) *Write

	// Withdraw removes the intents of these grants.
	Withdraw(h Hold) *Write
}

// Blockers are the entries of a record that keep a grant from being made.
type Blockers struct {
	By  []Record
	Any bool // a grant can be made once any of them is gone; false: once all are
}
