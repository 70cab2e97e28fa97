// Package protocol is the interface between the client and the layouts of tables. The client
// decides when to write, and what an answer means. A layout encodes each write for a table,
// and decodes the table's items. Client and layout exchange plain values: a Record decoded
// from an item, and a Write ready to be sent.
package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attribute"
)

// Item is a DynamoDB item, in the form that the AWS SDK for Go uses.
type Item = map[string]types.AttributeValue

// Record is the decoded record of a lock, or the decoded row of a session.
type Record struct {
	Key          Key
	Owner        string
	Token        int64  // fencing token; 0 if the holder has no token
	Grant        string // grant id; empty if the holder has no grant id
	Version      string
	Lease        time.Duration
	GrantedAt    time.Time
	Released     bool
	ExpiresAt    time.Time
	LeaseEnds    time.Time // end of the lease, by the wall clock of the client that wrote this version; zero if that client does not have a bounded clock
	Data         []byte
	Attributes   Item    // attributes that the caller has added
	Session      string  // id of the session that the holder renews instead of this record; empty if the record has its own lease
	Broken       *Broken // the last break of the lock by an operator; nil if the record has none
	TakenOver    *TakenOver
	Waiters      []Waiter  // the queue, its head first
	Handed       bool      // the previous holder has handed the key over, and the new holder has sent no write since
	NoQueueUntil time.Time // before this time, clients neither join the queue nor hand the key over; zero if the queue is not suspended
	Done         *Done     // done mark, which names the work that a client last completed under the lock; nil if the record has none
	Asked        string    // id of the grant whose holder was last asked to step down; empty if no holder was asked

	BrokenGrants map[string]string // in a session's row: ids of the session's grants that an operator has broken; the map key is the id of the break notice
}

// TakenOver describes the last takeover of a key from a dead holder. The description is
// only for people.
type TakenOver struct {
	From  string    // owner of the dead holder's grant
	At    time.Time // time of the takeover, by the clock of the client that took the key over; equal to GrantedAt of that client's grant
	Token int64     // token of the dead holder's grant; 0 if that grant had no token
}

// Broken describes the break of a lock by an operator. The description is only for people.
type Broken struct {
	By     string
	At     time.Time // time of the break, by the clock of the client that broke the lock
	Reason string
	Token  int64 // token of the broken grant; 0 if that grant had no token
}

// longestReason is the maximum length in bytes of the reason for a break. The length is
// limited because the record keeps the reason, and the holder prints it in one line.
const longestReason = 1000

// ReasonProblem returns the problem with the reason for a break, or "" if the reason is
// valid.
func ReasonProblem(reason string) string {
	switch {
	case len(reason) > longestReason:
		return fmt.Sprintf("the reason has %d bytes: use at most %d", len(reason), longestReason)
	case !utf8.ValidString(reason):
		return "the reason is not UTF-8"
	}
	return ""
}

// Break contains the values of the write by which an operator frees a key, whichever client
// holds it.
type Break struct {
	Version string    // version of the record after this write, new in each attempt
	Expires time.Time // time from which TTL may delete the record; zero if TTL never deletes it
	By      string    // owner of the client that breaks the lock; if empty, the write stores no description of the break
	At      time.Time
	Reason  string
}

// KindSession is the kind of a session's row. The session's client renews this row instead of
// the records of the locks under the session.
const KindSession = "session"

// DecodeError is the error for an item that a layout cannot decode: the name of an
// attribute, and the problem with it.
type DecodeError struct{ Attribute, Problem string }

func (e *DecodeError) Error() string { return e.Attribute + " " + e.Problem }

// Grant contains the values of the write that acquires a key.
type Grant struct {
	Key          Key
	Owner        string
	Version      string // version of the record after this write, new in each attempt; also the grant id if ID is empty
	ID           string // the grant id, if the client that receives the key by a hand-over has chosen it; empty if Version is the grant id
	Lease        time.Duration
	Now          time.Time
	IfExists     bool
	Session      string      // id of the owner's session; empty if the grant has a lease of its own
	Takeable     []string    // versions that earlier attempts of this client may have written; no caller holds the key by such an attempt, so the grant may overwrite a record with one of these versions
	Dead         *Record     // the dead holder from which the client takes the key over; nil if the key is free
	NoQueueUntil time.Time   // time until which the takeover suspends the queue; zero if the takeover does not suspend it
	Entry        *QueueEntry // queue entry of the waiter that acquires the key; the grant removes this entry; nil if the waiter has no entry
	Once         Once        // work to do under the grant; DynamoDB rejects the grant if the record marks that work as done
	Changes      Changes
}

// Renewal contains the values of the write that renews a lease: it stores a new version,
// which restarts the lease.
type Renewal struct {
	Version string // version of the record after this write, new in each attempt
	Lease   time.Duration
	Now     time.Time
	Changes Changes
	Heard   []string // ids of break notices that the session's client has read; the renewal removes them from the row
}

// Release contains the values of the write by which the holder frees a key.
type Release struct {
	Version string    // version of the record after this write, new in each attempt
	Expires time.Time // time from which TTL may delete the record; zero if TTL never deletes it
	Done    *Done     // mark of the work that was done under the lock; if nil, the record keeps its mark
	Changes Changes
}

// Schema describes the key attributes and the TTL attribute that a layout's table must
// have.
type Schema struct {
	Partition  string // name of the partition key
	Sort       string // name of the sort key; empty if the table has no sort key
	SortNumber bool   // the sort key is a number
	TTL        string // name of the attribute for DynamoDB's TTL; empty if the layout does not use TTL
}

// KeyOf returns the key of an item. It returns "" for a part that the item does not have.
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

// MaxToken is the highest fencing token. A key whose record contains this token cannot be granted
// again. JSON parsers that use doubles represent all integers up to 2^53-1 exactly (RFC 8259,
// section 6). So they represent every token exactly.
const MaxToken = 1<<53 - 2

// ErrLastToken is returned if a record contains the token MaxToken. The record's key cannot be
// granted again.
var ErrLastToken = errors.New("the fencing token is the last")

// Hold contains the values that a record must have so that DynamoDB applies a write of the holder.
// Each write of the holder changes the version, so DynamoDB rejects a late second copy of a write.
// A late copy of a grant may restore an earlier version. But it also raises the token, so writes
// under the earlier grant are still rejected.
type Hold struct {
	Key      Key
	Owner    string
	Grants   []string // id of the grant; several ids while the outcome of a hand-over is unknown
	Token    int64    // fencing token; 0 if the grant has had no answer, so that the token is unknown
	Versions []string // version of the holder's last write that was applied, and versions of the holder's attempts without an answer
}

// Reading contains the methods of Protocol that do not build writes.
type Reading interface {
	// CheckKey returns an error if k is not a valid key in the layout.
	CheckKey(k Key) error

	// Key returns the key attributes for k. It returns the error of CheckKey if k is not
	// valid.
	Key(k Key) (Item, error)

	// Schema returns the key attributes and the TTL attribute that the table must have.
	Schema() Schema

	// Skew returns the layout's MaxSkew if its records have an expiry time: the largest difference
	// between two clients' wall clocks. Otherwise it returns Config.MaxSkew: the largest error of this
	// machine's wall clock. Zero means that clients do not use wall clocks to detect dead holders.
	Skew() time.Duration

	// Owned reports whether the layout's records contain the owner.
	Owned() bool

	// Complete returns k with the layout's default sort key if k has no sort key.
	Complete(k Key) Key

	// Reserved reports whether the layout or leasehold uses the attribute with the given name.
	// Callers must not use such an attribute.
	Reserved(name string) bool

	// Decode decodes an item. It returns a *DecodeError if the item is not a valid lock
	// record.
	Decode(item Item) (Record, error)

	// Grantable returns ErrLastToken if the item contains the token MaxToken: its key cannot be
	// granted again. It does not check whether the key is free.
	Grantable(item Item) error
}

// Protocol builds the writes of one layout. Its methods are pure functions and send no
// requests.
type Protocol interface {
	Reading

	// Grant returns the write that acquires a key. The write's condition is that the key is free,
	// or that the record shows the holder g.Dead or one of the versions in g.Takeable.
	Grant(g Grant) *Write

	// Renew returns the write that renews the lease of the grant in h.
	Renew(h Hold, r Renewal) *Write

	// HandOver returns the write that ends the grant of h and grants the same key to g.Owner.
	HandOver(h Hold, g Grant) *Write

	// Release returns the write that frees the key. In a layout that can mark a record as
	// released, the write keeps the record. In any other layout, the write deletes the record.
	Release(h Hold, r Release) *Write

	// Delete returns the write that frees the key by deleting the record.
	Delete(h Hold) *Write

	// Guard returns a condition check for a transaction. The check fails if the grant of h has
	// ended. It accepts any version of the record, and changes nothing.
	Guard(h Hold) *Write

	// Break returns the write that frees the key, whatever client holds it. Its condition is
	// that the record still has the owner and the version of r.
	Break(r Record, b Break) *Write
}

// Rewriting is the protocol of a layout whose table may also contain records that were
// written in another layout.
type Rewriting interface {
	Protocol

	// Foreign describes the attribute of an item that prevents the layout's own library from
	// using the record. It returns "" if there is no such attribute.
	Foreign(item Item) string
}

// Changes are the changes that a write makes to the caller's data and attributes in a
// record. Data and attributes that Changes does not contain keep their values.
type Changes struct {
	SetData     bool
	Data        []byte // new data if SetData is true; nil removes the data
	InitialData []byte // data that a grant stores if the record has no data
	Attributes  Item   // new values by attribute name; a nil value removes the attribute
}

// None reports whether c changes neither data nor attributes.
func (c Changes) None() bool { return !c.SetData && c.InitialData == nil && len(c.Attributes) == 0 }

// In reports whether r already has the data and the attributes that c would write.
func (c Changes) In(r Record) bool {
	if c.SetData && ((c.Data == nil) != (r.Data == nil) || !bytes.Equal(c.Data, r.Data)) {
		return false
	}
	if !c.SetData && c.InitialData != nil && r.Data == nil {
		return false
	}
	for name, v := range c.Attributes {
		if !attribute.Equal(v, r.Attributes[name]) {
			return false
		}
	}
	return true
}

// LeaveData reports whether the record r would still contain data or attributes of the caller
// after a write with the changes c.
func (c Changes) LeaveData(r Record) bool {
	if c.Data != nil || r.Data != nil && !c.SetData {
		return true
	}
	after := Item{}
	maps.Copy(after, r.Attributes)
	maps.Copy(after, c.Attributes)
	maps.DeleteFunc(after, func(_ string, v types.AttributeValue) bool { return v == nil })
	return len(after) > 0
}
