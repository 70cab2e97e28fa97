// Package protocol is the interface between the client and the layouts. The
// client decides when to write and what an answer means. A layout knows how that
// write looks in its table. They exchange plain values: a Record decoded from an
// item, and a Write ready to be sent.
package protocol

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item in the SDK's form.
type Item = map[string]types.AttributeValue

// Record is a stored lock, in the client's terms.
type Record struct {
	Key          Key
	Owner        string
	Token        int64  // 0 if the holder has none
	Grant        string // empty if the holder has none
	Version      string
	Lease        time.Duration
	GrantedAt    time.Time
	Released     bool
	ExpiresAt    time.Time
	LeaseEnds    time.Time // end of the lease by the wall clock of the client that wrote this version, if that clock is bounded; zero if unknown
	Data         []byte
	Attributes   Item    // attributes of the caller
	Session      string  // id of the session that is renewed instead of the record
	Broken       *Broken // the last break of a grant of this record; nil if there is none
	TakenOver    *TakenOver
	Waiters      []Waiter  // the queue, its head first
	Handed       bool      // another client has handed the key over, and the holder has written nothing since
	NoQueueUntil time.Time // before this time no client joins the queue or hands the key over; zero if not set; advice only
	Done         *Done     // the last work done; nil if unknown
	Asked        string    // id of the last grant whose holder was asked to step down; empty if there is none

	BrokenGrants map[string]string // in a session's row: broken grants under the session, by the id of the break notice
}

// TakenOver describes the last grant that was taken over. The description is for people.
type TakenOver struct {
	From  string    // owner of that grant
	At    time.Time // time of the takeover by the clock of the client that took the key over; equals GrantedAt of its grant
	Token int64     // the grant's token; 0 if it had none
}

// Broken describes the break of a grant. The description is for people.
type Broken struct {
	By     string
	At     time.Time // time of the break, by the clock of the client that broke the grant
	Reason string
	Token  int64 // the grant's token; 0 if it had none
}

// longestReason is the maximum length in bytes of the reason for a break. The record keeps
// the reason, and the holder prints it in one line.
const longestReason = 1000

// ReasonProblem returns the problem with the reason for a break, or "" if it is valid.
func ReasonProblem(reason string) string {
	switch {
	case len(reason) > longestReason:
		return fmt.Sprintf("the reason has %d bytes: use at most %d", len(reason), longestReason)
	case !utf8.ValidString(reason):
		return "the reason is not UTF-8"
	}
	return ""
}

// Break is the write that frees a held key of any client.
type Break struct {
	Version string    // new in each attempt
	Expires time.Time // when TTL may delete the record; zero for never
	By      string    // owner of the client that breaks the grant; stored if the record is kept; if empty, no description of the break is stored
	At      time.Time
	Reason  string
}

// KindSession is the kind of a row that is renewed for all locks of a client.
const KindSession = "session"

// DecodeError is the reason why an item is not a lock of the layout.
type DecodeError struct{ Attribute, Problem string }

func (e *DecodeError) Error() string { return e.Attribute + " " + e.Problem }

// Grant is the write that acquires a key.
type Grant struct {
	Key          Key
	Owner        string
	Version      string // new in each attempt; also the grant's id, unless ID is set
	ID           string // the grant's id, if another client has chosen it; if empty, Version is the id
	Lease        time.Duration
	Now          time.Time
	IfExists     bool
	Session      string      // id of the owner's session; empty if the record itself is renewed
	Takeable     []string    // versions of earlier attempts that no client treats as held: the grant may replace them
	Dead         *Record     // the dead holder that the grant replaces; its queue is erased; nil if there is none
	NoQueueUntil time.Time   // until when the queue of the dead holder is suspended; zero if it is not suspended
	Entry        *QueueEntry // queue entry of the client that acquires the key; the grant removes it from the record's queue; nil if there is none
	Once         Once        // the work of the grant; the grant is rejected if that work is done
	Changes      Changes
}

// Renewal is the write that gives a hold a new version, and so restarts its lease.
type Renewal struct {
	Version string // new in each attempt
	Lease   time.Duration
	Now     time.Time
	Changes Changes
	Heard   []string // ids of break notices that the session's client has read; the renewal removes them from the row
}

// Release is the write that frees a key.
type Release struct {
	Version string // new in each attempt
	Now     time.Time
	Expires time.Time // when TTL may delete the record; zero for never
	Done    *Done     // the mark to store; nil keeps the record's mark
	Changes Changes
}

// Schema is the key and the TTL attribute that a layout's table must have.
type Schema struct {
	Partition  string // the partition key's name
	Sort       string // the sort key's name, empty for none
	SortNumber bool   // the sort key is a number
	TTL        string // the attribute of DynamoDB's TTL, empty for none
}

// KeyOf reads the key of an item. A missing part is "".
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

// MaxToken is the highest fencing token. JSON readers that use doubles read it, and the
// next integer, exactly (RFC 8259, section 6). Nothing is granted after it.
const MaxToken = 1<<53 - 2

// ErrLastToken is returned if a record has the token MaxToken, so that no grant can follow.
var ErrLastToken = errors.New("the fencing token is the last")

// Hold contains the values that a record must have for a write of the holder to succeed.
// Delayed duplicates do no harm: a version can come back only by a duplicate of its own
// grant, and then with a higher token.
type Hold struct {
	Key      Key
	Owner    string
	Grants   []string // ids of the grant; several while a hand-over has no answer yet
	Token    int64    // 0 while unknown, because a grant has no answer yet
	Versions []string // the last confirmed version, and the versions of attempts without an answer
}

// Reading is the part of a Protocol that writes nothing.
type Reading interface {
	// CheckKey returns an error if k cannot be encoded.
	CheckKey(k Key) error

	// Key encodes k. It returns the error of CheckKey.
	Key(k Key) (Item, error)

	// Schema returns the key and the TTL attribute that the table must have.
	Schema() Schema

	// Skew returns by how much the wall clock of this machine may be wrong. It applies in
	// layouts whose records have an expiry time, and where the client's clock is bounded.
	// Elsewhere it returns 0: a holder is dead after its version has not changed for one
	// lease, and no other clock counts.
	Skew() time.Duration

	// Owned reports whether records name their owner.
	Owned() bool

	// Complete fills in the default sort key of a key without one.
	Complete(k Key) Key

	// Reserved reports whether callers may not use an attribute name.
	Reserved(name string) bool

	// Decode reads an item. The error is a *DecodeError if it is not a lock.
	Decode(item Item) (Record, error)

	// Grantable returns ErrLastToken if no grant can follow the one that the key's record
	// shows, whether the key is held or free.
	Grantable(item Item) error
}

// Protocol makes the writes of one layout. Its methods are pure functions.
type Protocol interface {
	Reading

	// Grant acquires a key that is free, or whose record shows a takeable
	// version or a dead holder.
	Grant(g Grant) *Write

	// Renew renews the hold.
	Renew(h Hold, r Renewal) *Write

	// HandOver ends the hold and grants its key to g.Owner, in one write.
	HandOver(h Hold, g Grant) *Write

	// Release frees the key and keeps the record, or deletes it in layouts that
	// cannot keep it.
	Release(h Hold, r Release) *Write

	// Delete frees the key by deleting the record.
	Delete(h Hold) *Write

	// Guard checks that the grant has not ended, whether it was renewed or not. It changes
	// nothing.
	Guard(h Hold) *Write

	// Break frees the key, whatever client holds it, if the record still shows the grant
	// and the version of r.
	Break(r Record, b Break) *Write
}

// Rewriting is the protocol of a layout for tables to which other layouts may have written,
// too.
type Rewriting interface {
	Protocol

	// Foreign describes the part of an item that the layout's own library cannot read. It
	// returns "" if there is none.
	Foreign(item Item) string
}
