// Package protocol is the seam between the client and the layouts. The client
// knows when to write and what an answer means; a layout knows how that write
// is spelled in its table. Between them pass plain values: a Record read from
// an item, and a Write ready to be sent.
package protocol

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item as the SDK has it.
type Item = map[string]types.AttributeValue

// Key names a lock.
type Key struct{ Partition, Sort string }

// Record is a lock as stored, in the terms of the client.
type Record struct {
	Key        Key
	Owner      string
	Token      int64  // 0: a holder that has none
	Grant      string // "": a holder that has none
	Version    string
	Lease      time.Duration
	GrantedAt  time.Time
	Released   bool
	ExpiresAt  time.Time
	Data       []byte
	Attributes Item   // the caller's own
	Session    string // id of the session that is renewed in the record's place
	Mode       Mode   // of one entry of a record with several
}

// KindSession is the kind of a row that is renewed for all locks of a client.
const KindSession = "session"

// DecodeError says why an item does not read as a lock of the layout.
type DecodeError struct{ Attribute, Problem string }

func (e *DecodeError) Error() string { return e.Attribute + " " + e.Problem }

// Changes are what a write changes of that which the record carries for the
// caller. What they do not name stays as it is.
type Changes struct {
	SetData     bool
	Data        []byte // with SetData; nil removes
	InitialData []byte // set where the record has none; grants only
	Attributes  Item   // a nil value removes
}

// Grant is the write that takes a key.
type Grant struct {
	Key      Key
	Owner    string
	Version  string // of this attempt, and the grant's id
	Lease    time.Duration
	Now      time.Time
	IfExists bool
	Create   bool     // there was no record; for rows that are made in another way
	Session  string   // id of the owner's session; empty: the record is renewed itself
	Takeable []string // versions of own attempts that nobody believes in; of several that may stand side by side, to be absent
	Intents  []string // versions of own intents to be granted
	Dead     []Record // holders known to be dead, to be replaced
	Changes  Changes
}

// Renewal is the write that gives a hold a new version, and a new start to its
// lease.
type Renewal struct {
	Version string // of this attempt
	Lease   time.Duration
	Now     time.Time
	Changes Changes
}

// Release is the write that frees a key.
type Release struct {
	Version      string // of this attempt
	Now          time.Time
	Expires      time.Time     // when the record may be collected; zero: never
	ReadersFirst time.Duration // of a writer: for so long others let readers go first
	Changes      Changes
}

// Schema is what a layout asks of its table.
type Schema struct {
	Partition  string // the partition key's name
	Sort       string // the sort key's name, empty for none
	SortNumber bool   // the sort key is a number
	TTL        string // the attribute of DynamoDB's TTL, empty for none
}

// KeyOf reads the key of an item, as far as it is there.
func (s Schema) KeyOf(item Item) Key {
	part := func(name string) string {
		switch v := item[name].(type) {
		case *types.AttributeValueMemberS:
			return v.Value
		case *types.AttributeValueMemberN:
			return v.Value
		}
		return ""
	}
	return Key{Partition: part(s.Partition), Sort: part(s.Sort)}
}

// Hold names a grant as the record must show it for a write of its holder to
// land. Late duplicates are harmless: a version never comes back but by a
// duplicate of its own grant, and then with a higher token.
type Hold struct {
	Key      Key
	Owner    string
	Grants   []string // ids; several while a hand-over is unresolved
	Token    int64    // 0: not known, while a grant is unresolved
	Versions []string // confirmed last, and any unresolved
}

// Protocol spells the writes of one layout. Its methods are pure.
type Protocol interface {
	// Key encodes k. The error says what is wrong with k.
	Key(k Key) (Item, error)

	// Schema is what the layout asks of its table.
	Schema() Schema

	// Skew is the most by which the clocks of those who share the table may
	// differ, where a record's expiry is a time by the clock of its writer.
	// There ExpiresAt counts; elsewhere, at 0, a version that stood still.
	Skew() time.Duration

	// Owned reports whether records name their owner.
	Owned() bool

	// Complete fills in what a call may leave out of a key.
	Complete(k Key) Key

	// Reserved reports whether an attribute name is the layout's own.
	Reserved(name string) bool

	// Decode reads an item; a *DecodeError if it is not a lock.
	Decode(item Item) (Record, error)

	// Grant takes a free key, or one that shows a takeable version or the
	// dead holder.
	Grant(g Grant) *Write

	// Renew renews the hold.
	Renew(h Hold, r Renewal) *Write

	// HandOver ends the hold and grants its key to g.Owner, in one write.
	HandOver(h Hold, g Grant) *Write

	// Release frees the key and keeps the record. A layout that cannot keep it
	// deletes it.
	Release(h Hold, r Release) *Write

	// Delete frees the key by deleting the record.
	Delete(h Hold) *Write

	// Guard holds while the grant stands, renewed or not, and changes nothing.
	Guard(h Hold) *Write

	// Break frees the record while it is as r shows it: its grant, whoever
	// holds it, and not renewed since.
	Break(r Record, version string, expires time.Time) *Write
}

// Sharing is a protocol whose records may belong to a session.
type Sharing interface {
	Protocol

	// SessionKey is the key of a session's row, and IsSessionKey knows one.
	SessionKey(id string) Key
	IsSessionKey(k Key) bool

	// Session spells the rows of sessions as records: a grant creates one and
	// takes none over, and a release marks it dead for good.
	Session() Protocol
}

// Rewriting is a protocol whose table other layouts write as well.
type Rewriting interface {
	Protocol

	// Foreign says what in an item the layout's library cannot live with;
	// empty: nothing.
	Foreign(item Item) string
}
