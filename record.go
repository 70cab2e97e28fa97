package leasehold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Key names a lock. Sort is empty in a table without a sort key.
type Key struct{ Partition, Sort string }

// Keys makes keys without a sort key.
func Keys(partitions ...string) []Key {
	keys := make([]Key, len(partitions))
	for i, p := range partitions {
		keys[i].Partition = p
	}
	return keys
}

// String returns the partition key, and the sort key in parentheses if any. One
// that would be misread in a line of text, such as an empty one or one with a
// space, is quoted. It is for people: never compare or parse it.
func (k Key) String() string {
	if k.Sort == "" {
		return quoted(k.Partition)
	}
	return quoted(k.Partition) + " (" + quoted(k.Sort) + ")"
}

// quoted is s, in quotes if it is not plain letters, digits and signs.
func quoted(s string) string {
	odd := func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r) || unicode.IsSpace(r) || strings.ContainsRune("\"'`\\", r)
	}
	if s == "" || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// Record is a lock as stored. Its JSON is that of the command's get and ls.
type Record struct {
	Key        Key
	Owner      string // empty in layouts that name none
	Token      int64  // 0: granted by a peer that has none
	Grant      string // id of the grant; empty: a peer's
	Version    string
	Lease      time.Duration // 0 in layouts that store an expiry in its place
	GrantedAt  time.Time     // by the holder's clock, for people; zero: unknown
	Released   bool
	ExpiresAt  time.Time // by the writer's clock: of the lease, or of a released record; zero in layouts that store none
	Data       []byte
	Attributes map[string]types.AttributeValue // the caller's own

	session string        // id of the session that is renewed in the record's place
	mode    protocol.Mode // of a holder of a read/write lock
}

func recordOf(r protocol.Record) Record {
	return Record{
		Key: Key(r.Key), Owner: r.Owner, Token: r.Token, Grant: r.Grant, Version: r.Version,
		Lease: r.Lease, GrantedAt: r.GrantedAt, Released: r.Released, ExpiresAt: r.ExpiresAt,
		Data: r.Data, Attributes: r.Attributes, session: r.Session, mode: r.Mode,
	}
}

// clone returns a copy that shares nothing with r: what a caller does to its data
// and attributes, it does to its own.
func (r Record) clone() Record {
	r.Data, r.Attributes = bytes.Clone(r.Data), cloneAttributes(r.Attributes)
	return r
}

func (r Record) protocol() protocol.Record {
	return protocol.Record{
		Key: protocol.Key(r.Key), Owner: r.Owner, Token: r.Token, Grant: r.Grant, Version: r.Version,
		Lease: r.Lease, GrantedAt: r.GrantedAt, Released: r.Released, ExpiresAt: r.ExpiresAt,
		Data: r.Data, Attributes: r.Attributes, Session: r.session, Mode: r.mode,
	}
}

// jsonTime is how every time is written: RFC 3339 in UTC with milliseconds.
const jsonTime = "2006-01-02T15:04:05.000Z07:00"

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(jsonTime)
}

// MarshalJSON writes the command's schema; attributes are DynamoDB JSON.
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
		GrantedAt  string         `json:"grantedAt,omitempty"`
		HeldMs     int64          `json:"heldMs,omitempty"`
		ExpiresAt  string         `json:"expiresAt,omitempty"`
		Data       []byte         `json:"data,omitempty"`
		Attributes map[string]any `json:"attributes,omitempty"`
	}{
		Key: r.Key.Partition, SortKey: r.Key.Sort, State: "held", Mode: r.mode, Owner: r.Owner, Token: r.Token,
		Version: r.Version, LeaseMs: r.Lease.Milliseconds(), GrantedAt: formatTime(r.GrantedAt),
		ExpiresAt: formatTime(r.ExpiresAt), Data: r.Data,
	}
	switch {
	case r.Released:
		out.State = "released"
	case !r.GrantedAt.IsZero():
		out.HeldMs = max(time.Since(r.GrantedAt), 0).Milliseconds()
	}
	for name, v := range r.Attributes {
		if out.Attributes == nil {
			out.Attributes = map[string]any{}
		}
		j, err := attributeJSON(v)
		if err != nil {
			return nil, fmt.Errorf("leasehold: attribute %s: %w", name, err)
		}
		out.Attributes[name] = j
	}
	return json.Marshal(out)
}
