package protocol

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// KindReadWrite is the kind of a row that one writer or several readers hold.
const KindReadWrite = "rw"

// Mode is what an entry of such a row is.
type Mode string

// The modes.
const (
	ModePlain        Mode = ""              // a lock with one holder
	ModeRead         Mode = "read"          // one of several readers
	ModeWrite        Mode = "write"         // the writer
	ModeIntent       Mode = "intent"        // of a writer that waits
	ModeReadersFirst Mode = "readers first" // what a writer that left asks of others
)

// IsReadWrite reports whether an item is such a row.
func IsReadWrite(item Item) bool {
	kind, ok := item["kind"].(*types.AttributeValueMemberS)
	return ok && kind.Value == KindReadWrite
}

// ReadWriting is a protocol whose table has rows that one writer or several
// readers hold.
type ReadWriting interface {
	Protocol

	// ReadWrite spells such rows for one who asks for ModeRead or ModeWrite. One
	// who is not to wait does not let readers go first.
	ReadWrite(m Mode, noWait bool) Side

	// Entries returns who holds such a row, the longest first; one released
	// record if nobody does.
	Entries(item Item) ([]Record, error)
}

// Side is the protocol of a record with several holders for one who asks to
// read, or to write: a grant adds an entry, and every other write is of the entries
// named by its Hold. Its Decode is of no entry; Of has that.
type Side interface {
	Protocol

	// Of is the protocol of the entry of one grant: Decode reads that entry,
	// or who has come in its place.
	Of(grant string) Protocol

	// Blockers returns who in item keeps a grant from being made at now. The
	// record is free of them if there are none.
	Blockers(item Item, now time.Time) (Blockers, error)

	// Intend posts or renews the intent to be granted, in the place of earlier
	// ones, own and dead. Nil: a grant of this mode needs none, or cannot be
	// prepared while these blockers are there.
	Intend(by Blockers, i Grant) *Write

	// Sweep removes readers that are dead, if each is as it was seen, and touches
	// nobody else.
	Sweep(key Key, dead []Record) *Write

	// Withdraw removes the intents of these grants.
	Withdraw(h Hold) *Write
}

// Blockers are the entries of a record that keep a grant from being made.
type Blockers struct {
	By  []Record
	Any bool // it is enough that one of them goes
}
