package leasehold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Key names a lock by its partition key and, in a table that has one, its sort
// key; otherwise Sort is empty.
//
// A call for one key takes the partition key as a string, which is usually the
// whole key, and WithSortKey. A call for several keys takes Keys of strings, or a
// []Key with sort keys. Break takes the Record that its caller has read: it frees
// that grant, not whatever holds the key by then.
type Key struct{ Partition, Sort string }

// Keys returns keys without a sort key, for AcquireAll and AcquireAny.
func Keys(partitions ...string) []Key {
	keys := make([]Key, len(partitions))
	for i, p := range partitions {
		keys[i].Partition = p
	}
	return keys
}

// String returns the partition key, followed by the sort key in parentheses if
// there is one. A key that could be misread in a line of text is quoted, as an
// empty one or one with a space, and of more than 120 characters the middle is left
// out. It is for people: do not compare or parse it.
func (k Key) String() string { return protocol.Key(k).String() }

// Record is a lock as stored. Its JSON is what the command's get and ls print.
type Record struct {
	Key        Key
	Owner      string                          // of the last grant; empty in layouts that store none
	Token      int64                           // fencing token of the last grant; 0 if another library granted it
	Grant      string                          // id of the last grant; empty if another library granted it
	Version    string                          // new with every write of ours
	Lease      time.Duration                   // 0 in layouts that store when the lease expires
	GrantedAt  time.Time                       // by the holder's clock, for people; zero: unknown
	Released   bool                            // the key is free, and the record kept
	ExpiresAt  time.Time                       // of the lease or, once released, of the record; by the writer's clock; zero: not stored
	Data       []byte                          // from WithData or WithInitialData; nil: none
	Attributes map[string]types.AttributeValue // from WithAttributes; nil: none

	Broken    *Broken    // the last break of one of this key's grants, even if others were made since; nil: none is known
	TakenOver *TakenOver // the last of this key's grants that was taken over, even if others were made since; nil: none is known

	Done *Done // what was done last, with Once or Every; nil: nothing is known to be

	Waiting []Waiter // who stands in line, the next one first; see Config.Line

	Session string // id of the shared lease that is renewed in the record's place; empty: none. Lease is then for those who know no shared leases

	mode protocol.Mode // of a holder of a read/write lock
}

func recordOf(r protocol.Record) Record {
	return Record{
		Key: Key(r.Key), Owner: r.Owner, Token: r.Token, Grant: r.Grant, Version: r.Version,
		Lease: r.Lease, GrantedAt: r.GrantedAt, Released: r.Released, ExpiresAt: r.ExpiresAt,
		Data: r.Data, Attributes: r.Attributes, Broken: (*Broken)(copied(r.Broken)), TakenOver: (*TakenOver)(copied(r.TakenOver)),
		Done: (*Done)(copied(r.Done)), Waiting: waitersOf(r.Waiters), Session: r.Session, mode: r.Mode,
	}
}

// Waiter is who stands in line for a key. It may have died since.
type Waiter struct {
	Owner string
	Since time.Time // by its own clock, for people
}

func waitersOf(line []protocol.Waiter) []Waiter {
	var waiting []Waiter
	for _, w := range line {
		waiting = append(waiting, Waiter{w.Owner, protocol.VersionTime(w.Grant)})
	}
	return waiting
}

// TakenOver says whose grant was taken over, after its holder had died.
type TakenOver struct {
	From  string    // owner of that grant
	At    time.Time // by the clock of who took it over: GrantedAt of the next grant
	Token int64     // of that grant; 0: it had none
}

// before reports whether t is the grant before that of r.
func (t *TakenOver) before(r Record) bool {
	if t == nil || t.Token == 0 {
		return t != nil && t.At.Equal(r.GrantedAt)
	}
	return t.Token == r.Token-1
}

// Broken says who broke a grant, and why.
type Broken struct {
	By     string    // owner of the client that broke it
	At     time.Time // by that client's clock
	Reason string    // from WithReason
	Token  int64     // of the grant; 0: it had none
}

// isOf reports whether b is the break of the grant with this token.
func (b *Broken) isOf(token int64) bool { return b != nil && b.Token == token && token != 0 }

// String says it in one line, for people.
func (b *Broken) String() string {
	s := "broken by " + visible.Name(cmp.Or(protocol.ShortOwner(b.By), "somebody")) + " at " + clockText(b.At)
	if b.Reason != "" {
		s += ": " + visible.Name(b.Reason)
	}
	return s
}

// clockText is a time for people: with its date unless it is of the last hours.
func clockText(t time.Time) string {
	if time.Since(t) > 12*time.Hour {
		return t.Local().Format(time.DateTime)
	}
	return t.Local().Format("15:04:05")
}

// clone returns a copy that shares nothing with r: its caller may change the data and
// attributes.
func (r Record) clone() Record {
	r.Data, r.Attributes = bytes.Clone(r.Data), cloneAttributes(r.Attributes)
	r.Broken, r.TakenOver, r.Done, r.Waiting = copied(r.Broken), copied(r.TakenOver), copied(r.Done), slices.Clone(r.Waiting)
	return r
}

// copied is a copy of what p points to; nil for nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func (r Record) protocol() protocol.Record {
	return protocol.Record{
		Key: protocol.Key(r.Key), Owner: r.Owner, Token: r.Token, Grant: r.Grant, Version: r.Version,
		Lease: r.Lease, GrantedAt: r.GrantedAt, Released: r.Released, ExpiresAt: r.ExpiresAt,
		Data: r.Data, Attributes: r.Attributes, Broken: (*protocol.Broken)(r.Broken), TakenOver: (*protocol.TakenOver)(r.TakenOver), Done: (*protocol.Done)(r.Done), Session: r.Session, Mode: r.mode,
	}
}

// WrittenAt is when the record was written last, by the clock of who did: its grant,
// its last renewal or its release. It is part of Version, so it costs nothing. Zero:
// another library wrote it, or the layout keeps no version of a released record.
// Under a shared lease the session is renewed instead, and the record rarely.
func (r Record) WrittenAt() time.Time { return protocol.VersionTime(r.Version) }

// brokenJSON is a Broken in a record's JSON.
type brokenJSON struct {
	By     string `json:"by"`
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"`
	Token  int64  `json:"token,omitempty"`
}

// waiterJSON is a Waiter in a record's JSON.
type waiterJSON struct {
	Owner string `json:"owner"`
	Since string `json:"since"`
}

// jsonTime is how every time is written: RFC 3339 in UTC with milliseconds.
const jsonTime = "2006-01-02T15:04:05.000Z07:00"

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(jsonTime)
}

// parseTime reads what formatTime has written.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if year := t.UTC().Year(); err == nil && (t.IsZero() || year < 0 || year > 9999) {
		return time.Time{}, fmt.Errorf("%s is in no year from 0 to 9999, or no time at all", s)
	}
	return t, err
}

// MarshalJSON writes what the command prints; attributes are DynamoDB JSON.
func (r Record) MarshalJSON() ([]byte, error) {
	out := struct {
		Key        string         `json:"key"`
		SortKey    string         `json:"sortKey,omitempty"`
		State      string         `json:"state"`
		Mode       protocol.Mode  `json:"mode,omitempty"` // of a holder of a read/write lock
		Owner      string         `json:"owner"`
		Token      int64          `json:"token,omitempty"`
		Version    string         `json:"version"`
		LeaseMs    int64          `json:"leaseMs"`
		Session    string         `json:"session,omitempty"`
		GrantedAt  string         `json:"grantedAt,omitempty"`
		HeldMs     int64          `json:"heldMs,omitempty"`
		RenewedAt  string         `json:"renewedAt,omitempty"`
		ReleasedAt string         `json:"releasedAt,omitempty"`
		ExpiresAt  string         `json:"expiresAt,omitempty"`
		Data       []byte         `json:"data,omitempty"`
		Attributes map[string]any `json:"attributes,omitempty"`
		Broken     *brokenJSON    `json:"broken,omitempty"`
		Former     *Former        `json:"former,omitempty"`
		Done       *Done          `json:"done,omitempty"`
		Waiting    []waiterJSON   `json:"waiting,omitempty"`
	}{
		Key: r.Key.Partition, SortKey: r.Key.Sort, State: "held", Mode: r.mode, Owner: r.Owner, Token: r.Token,
		Version: r.Version, LeaseMs: r.Lease.Milliseconds(), Session: r.Session, GrantedAt: formatTime(r.GrantedAt),
		ExpiresAt: formatTime(r.ExpiresAt), Data: r.Data, Former: r.Former(), Done: r.Done,
	}
	if b := r.Broken; b != nil {
		out.Broken = &brokenJSON{By: b.By, At: formatTime(b.At), Reason: b.Reason, Token: b.Token}
	}
	for _, w := range r.Waiting {
		out.Waiting = append(out.Waiting, waiterJSON{w.Owner, formatTime(w.Since)})
	}
	switch {
	case r.Released:
		out.State = "released"
		out.ReleasedAt = formatTime(r.WrittenAt())
	case r.Version != r.Grant:
		out.RenewedAt = formatTime(r.WrittenAt())
	}
	if !r.Released && !r.GrantedAt.IsZero() {
		out.HeldMs = max(time.Since(r.GrantedAt), 0).Milliseconds()
	}
	var err error
	if out.Attributes, err = attributesJSON(r.Attributes); err != nil {
		return nil, fmt.Errorf("leasehold: attributes: %w", err)
	}
	return json.Marshal(out)
}
