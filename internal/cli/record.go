package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// recordJSON is a record as get and ls print it: Record's own JSON between the
// table and, once observed, whether the holder lives.
type recordJSON struct {
	Table  string
	Record leasehold.Record
	Holder liveness
}

func (r recordJSON) MarshalJSON() ([]byte, error) {
	record, err := json.Marshal(r.Record)
	if err != nil {
		return nil, err
	}
	table, err := json.Marshal(r.Table)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`{"table":`)
	b.Write(table)
	b.WriteByte(',')
	if r.Holder != "" {
		b.WriteString(`"holder":` + strconv.Quote(string(r.Holder)) + ",")
	}
	b.Write(record[1:])
	return b.Bytes(), nil
}

// liveness is what observing a held record for its lease has shown.
type liveness string

const (
	live liveness = "live"
	dead liveness = "dead"
)

// state is a record's state in the words of its JSON.
func state(r leasehold.Record) string {
	if r.Released {
		return "released"
	}
	return "held"
}

// shortOwner is an owner for people: of its id, enough to tell two apart.
func shortOwner(owner string) string {
	if owner == "" {
		return "somebody"
	}
	return printable(protocol.ShortOwner(owner))
}

// withoutID is the name in an owner that was made by a lock client.
func withoutID(owner string) string {
	if !protocol.HasClientID(owner) {
		return owner
	}
	return owner[:strings.LastIndexByte(owner, '/')]
}

// heldFor is how long a record has been held, for people; empty: not known.
func heldFor(r leasehold.Record, now time.Time) string {
	if r.GrantedAt.IsZero() || r.Released {
		return ""
	}
	return age(now.Sub(r.GrantedAt))
}

// grantOf tells one grant of a key from the next. A foreign one has no id: its
// holder's name stays the same while it renews, and where records say when they
// expire it does not renew.
func grantOf(r leasehold.Record) string {
	if r.Lease == 0 {
		return cmp.Or(r.Grant, r.Version)
	}
	return cmp.Or(r.Grant, r.Owner)
}

// leaseFixed is the lease in a record; empty: it has none.
func leaseFixed(r leasehold.Record) string {
	if r.Lease == 0 {
		return ""
	}
	return shortDuration(r.Lease)
}

// leaseText is the lease in a record or, where it has none, how far off its
// expiry is, for people.
func leaseText(r leasehold.Record, now time.Time) string {
	left := r.ExpiresAt.Sub(now)
	switch {
	case r.Lease != 0 || r.ExpiresAt.IsZero() || r.Released:
		return leaseFixed(r)
	case left < 0:
		return age(-left) + " ago"
	}
	return "in " + age(left)
}

func tokenText(r leasehold.Record) string {
	if r.Token == 0 {
		return ""
	}
	return strconv.FormatInt(r.Token, 10)
}

// timeText is a time in a pipe, RFC 3339; empty: not known.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return timeJSON(t)
}
