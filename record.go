package leasehold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attribute"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Key is struct{ Partition, Sort string }: a lock's partition key and its sort key, if the
// table has sort keys. The method String returns text for people.
type Key = protocol.Key

// Keys returns keys without a sort key.
func Keys(partitions ...string) []Key {
	keys := make([]Key, len(partitions))
	for i, p := range partitions {
		keys[i].Partition = p
	}
	return keys
}

// Record is a stored lock. The commands get and ls print its JSON.
type Record struct {
	Key        Key
	Owner      string                          // owner of the last grant; empty in layouts without owners
	Token      int64                           // fencing token of the last grant; 0 if another library granted it
	Grant      string                          // id of the last grant; empty if another library granted it
	Version    string                          // id of the last write; every write by leasehold changes it
	Lease      time.Duration                   // lease of the last grant or renewal; 0 in layouts that store when the lease expires
	GrantedAt  time.Time                       // time of the last grant, by the holder's clock, for people; zero if unknown
	Released   bool                            // the key is free, and its record was kept
	WrittenAt  time.Time                       // time of the last grant, renewal or release, by the writer's clock; seldom updated under a shared lease; zero if unknown
	ExpiresAt  time.Time                       // end of the lease or, after a release, of the record, by the writer's clock; zero if not stored
	Data       []byte                          // set by WithData or WithInitialData; nil if there is none
	Attributes map[string]types.AttributeValue // set by WithAttributes, and other attributes that the layout does not use; nil if there are none

	Session string // id of the shared lease, which is renewed instead of the record; empty if none; if set, Lease is only for clients that do not know shared leases

	Former *End  // last grant of a free key, or grant before the current one; nil if the record does not contain it
	Broken *End  // last grant of this key that a client broke, even if other grants were made since; nil if unknown
	Done   *Done // last work done with Once or Every; nil if unknown

	// Waiting is the queue, its head first. It may contain waiters that have died.
	Waiting []struct {
		Owner string
		Since time.Time // when the waiter joined the queue, by its own clock
	}
	NoQueueUntil time.Time // no client joins the queue before this time, because the waiter that received the key died; zero if unset
}

// recordOf converts an internal record to a Record for users. It copies data and attributes,
// because users may change them.
func recordOf(in protocol.Record) Record {
	r := Record{
		Key: in.Key, Owner: in.Owner, Token: in.Token, Grant: in.Grant, Version: in.Version, Session: in.Session,
		Lease: in.Lease, GrantedAt: in.GrantedAt, Released: in.Released, WrittenAt: protocol.VersionTime(in.Version), ExpiresAt: in.ExpiresAt,
		Data: bytes.Clone(in.Data), Attributes: attribute.Clone(in.Attributes), NoQueueUntil: in.NoQueueUntil,
	}
	if in.Done != nil {
		done := Done(*in.Done)
		r.Done = &done
	}
	if b := in.Broken; b != nil {
		r.Broken = &End{How: "broken", Token: b.Token, At: b.At, By: b.By, Reason: b.Reason}
	}
	r.Former = r.formerOf(in.TakenOver)
	for _, w := range in.Waiters {
		r.Waiting = append(r.Waiting, struct {
			Owner string
			Since time.Time
		}{w.Owner, protocol.VersionTime(w.Grant)})
	}
	return r
}

// recordIn returns a pointer to recordOf(*in), or nil if in is nil.
func recordIn(in *protocol.Record) *Record {
	if in == nil {
		return nil
	}
	r := recordOf(*in)
	return &r
}

// LogValue returns the record, without data and attributes, for package slog.
func (r Record) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("key", r.Key.String()), slog.String("owner", r.Owner), slog.Int64("token", r.Token),
		slog.String("grant", r.Grant), slog.Duration("lease", r.Lease), slog.Bool("released", r.Released),
	)
}

// End describes how a grant ended.
type End struct {
	How    string    // "released"; "taken over", as its holder had died; or "broken"
	Owner  string    // owner of the grant; empty if unknown
	Token  int64     // fencing token of the grant; 0 if it had none
	At     time.Time // when the grant ended, by the clock of the client that ended it; zero if unknown
	By     string    // owner of the client that broke the grant; empty if it was not broken
	Reason string    // BreakOptions.Reason of the client that broke the grant
}

// isOf reports whether b is about the grant with the given token. b is a value of Record.Broken.
func (b *End) isOf(token int64) bool { return b != nil && b.Token == token && token != 0 }

// brokenText returns one line of text for people: which client broke the grant, when and
// why.
func (b *End) brokenText() string {
	s := "broken by " + ownerName(b.By) + " at " + clockText(b.At)
	if b.Reason != "" {
		s += ": " + visible.Word(b.Reason)
	}
	return s
}

// clockText returns the time of day as text for people. If t is more than 12 hours ago, the
// text contains the date.
func clockText(t time.Time) string {
	if time.Since(t) > 12*time.Hour {
		return t.Local().Format(time.DateTime)
	}
	return t.Local().Format("15:04:05")
}

// brokenJSON is the form of Record.Broken in a record's JSON.
type brokenJSON struct {
	By     string `json:"by"`
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"`
	Token  int64  `json:"token,omitempty"`
}

// formerJSON is the form of Record.Former in a record's JSON.
type formerJSON struct {
	Owner string `json:"owner,omitempty"`
	Token int64  `json:"token,omitempty"`
	Until string `json:"until,omitempty"`
	Ended string `json:"ended"`
}

// waiterJSON is the form of a waiter in a record's JSON.
type waiterJSON struct {
	Owner string `json:"owner"`
	Since string `json:"since"`
}

// jsonTime is the form of every time in a record's JSON: RFC 3339 in UTC with milliseconds.
const jsonTime = "2006-01-02T15:04:05.000Z07:00"

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(jsonTime)
}

// parseTime parses a time that formatTime has written.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if year := t.UTC().Year(); err == nil && (t.IsZero() || year < 0 || year > 9999) {
		return time.Time{}, fmt.Errorf("%s is in no year from 0 to 9999, or no time at all", s)
	}
	return t, err
}

// MarshalJSON returns the JSON that "leasehold get" prints. Attributes are in DynamoDB JSON.
func (r Record) MarshalJSON() ([]byte, error) {
	out := struct {
		Key        string         `json:"key"`
		SortKey    string         `json:"sortKey,omitempty"`
		State      string         `json:"state"`
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
		Former     *formerJSON    `json:"former,omitempty"`
		Done       *Done          `json:"done,omitempty"`
		Waiting    []waiterJSON   `json:"waiting,omitempty"`
		NoQueue    string         `json:"noQueueUntil,omitempty"`
	}{
		Key: r.Key.Partition, SortKey: r.Key.Sort, State: "held", Owner: r.Owner, Token: r.Token,
		Version: r.Version, LeaseMs: r.Lease.Milliseconds(), Session: r.Session, GrantedAt: formatTime(r.GrantedAt),
		ExpiresAt: formatTime(r.ExpiresAt), Data: r.Data, Done: r.Done,
		NoQueue: formatTime(r.NoQueueUntil),
	}
	if f := r.Former; f != nil {
		out.Former = &formerJSON{f.Owner, f.Token, formatTime(f.At), f.How}
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
		out.ReleasedAt = formatTime(r.WrittenAt)
	case r.Version != r.Grant:
		out.RenewedAt = formatTime(r.WrittenAt)
	}
	if !r.Released && !r.GrantedAt.IsZero() {
		out.HeldMs = max(time.Since(r.GrantedAt), 0).Milliseconds()
	}
	var err error
	if out.Attributes, err = attribute.JSON(r.Attributes); err != nil {
		return nil, fmt.Errorf("leasehold: attributes: %w", err)
	}
	return json.Marshal(out)
}

// Done is the mark of the last work done under a key with Once or Every.
type Done struct {
	Once   string    // the label; empty with Every
	Period time.Time // the start of the period; zero with Once
	Owner  string    // the holder that did the work
	At     time.Time // when the work was done, by the holder's clock
	Token  int64     // fencing token of the holder's grant
}

// MarshalJSON returns the JSON that the leasehold command prints.
func (d Done) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Once   string `json:"once,omitempty"`
		Period string `json:"period,omitempty"`
		By     string `json:"by"`
		At     string `json:"at,omitempty"`
		Token  int64  `json:"token,omitempty"`
	}{d.Once, formatTime(d.Period), d.Owner, formatTime(d.At), d.Token})
}

func (d *Done) String() string {
	what := visible.Word(d.Once)
	if d.Once == "" {
		what = "the work of " + visible.Period(d.Period)
	}
	s := what + " was done by " + ownerName(d.Owner)
	if !d.At.IsZero() {
		s += " at " + clockText(d.At)
	}
	if d.Token != 0 {
		s += fmt.Sprintf(" (token %d)", d.Token)
	}
	return s
}

// formerOf returns the last grant of a free key or, while the key is held, the grant before the
// current one. It returns nil if the record does not contain that grant. The parameter "last" is
// the record's latest take-over from a dead holder.
func (r *Record) formerOf(last *protocol.TakenOver) *End {
	switch {
	case r.Released && r.Owner == "":
		return nil
	case r.Released && r.Broken.isOf(r.Token):
		broken := *r.Broken
		broken.Owner = r.Owner
		return &broken
	case r.Released:
		return &End{How: "released", Owner: r.Owner, Token: r.Token, At: r.WrittenAt}
	case r.tookOver(last):
		return &End{How: "taken over", Owner: last.From, Token: last.Token, At: last.At}
	case r.Broken.isOf(r.Token - 1):
		broken := *r.Broken
		return &broken
	}
	return nil
}

// tookOver reports whether the take-over "last" began the record's current grant. "last" is the
// record's most recent take-over.
func (r *Record) tookOver(last *protocol.TakenOver) bool {
	if last == nil || last.Token == 0 {
		return last != nil && last.At.Equal(r.GrantedAt)
	}
	return last.Token == r.Token-1
}
