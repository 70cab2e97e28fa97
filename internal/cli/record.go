package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// recordJSON is a record as get and ls print it: the table, the holder's liveness
// if it was observed, what it is a permit of, and the Record's own JSON.
type recordJSON struct {
	Table  string
	Record leasehold.Record
	Holder liveness
	Permit *permit // nil: it is not known to be one
}

func (r recordJSON) MarshalJSON() ([]byte, error) {
	return joinedJSON(struct {
		Table  string   `json:"table"`
		Holder liveness `json:"holder,omitempty"`
		*permit
	}{r.Table, r.Holder, r.Permit}, r.Record)
}

// joinedJSON is the JSON of two values as one object. Both have fields.
func joinedJSON(first, second any) ([]byte, error) {
	head, err := json.Marshal(first)
	if err != nil {
		return nil, err
	}
	tail, err := json.Marshal(second)
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), tail[1:]...), nil
}

// encodeChange writes a record as of a change: its JSON, after the time, with its
// state. Of a record that is gone it is what was known last.
func encodeChange(w io.Writer, table string, c change, at time.Time) error {
	record, err := json.Marshal(recordJSON{Table: table, Record: c.record})
	if err != nil {
		return err
	}
	// The first one is the field: in a key, quotes are escaped.
	was, is := `"state":`+strconv.Quote(state(c.record)), `"state":`+strconv.Quote(c.state)
	record = bytes.Replace(record, []byte(was), []byte(is), 1)
	_, err = fmt.Fprintf(w, "{\"time\":%q,%s\n", timeJSON(at), record[1:])
	return err
}

// liveness says whether a holder is alive. It is "" if it was not observed.
type liveness string

const (
	live    liveness = "live"
	dead    liveness = "dead"
	unknown liveness = "unknown" // it was not observed for long enough
)

// state returns a record's state as in its JSON.
func state(r leasehold.Record) string {
	if r.Released {
		return "released"
	}
	return "held"
}

// shortOwner returns an owner for people, with its client id shortened.
func shortOwner(owner string) string {
	if owner == "" {
		return "somebody"
	}
	return printable(protocol.ShortOwner(owner))
}

// withoutID returns an owner without the client id that a lock client appends.
func withoutID(owner string) string {
	if !protocol.HasClientID(owner) {
		return owner
	}
	return owner[:strings.LastIndexByte(owner, '/')]
}

// heldFor says how long a record has been held. Empty: unknown.
func heldFor(r leasehold.Record, now time.Time) string {
	if r.GrantedAt.IsZero() || r.Released {
		return ""
	}
	return age(now.Sub(r.GrantedAt))
}

// grantOf distinguishes one grant of a key from the next. Grants of other
// libraries have no id, but their owner stays the same while they renew. In
// layouts that store an expiry time they never renew, so the version stays the
// same.
func grantOf(r leasehold.Record) string {
	if r.Lease == 0 {
		return cmp.Or(r.Grant, r.Version)
	}
	return cmp.Or(r.Grant, r.Owner)
}

// leaseFixed formats the lease in a record. Empty: it has none.
func leaseFixed(r leasehold.Record) string {
	if r.Lease == 0 {
		return ""
	}
	return shortDuration(r.Lease)
}

// leaseText formats the lease in a record for people or, if it has none, the time
// until or since its expiry.
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

// localTime formats a time for people. Empty: unknown.
func localTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// timeText formats a time for a pipe: RFC 3339. Empty: unknown.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return timeJSON(t)
}
