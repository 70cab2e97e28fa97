package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// recordJSON is a record as get and ls print it: the table, the holder's liveness
// if it was observed, what it is a permit of, and the Record's own JSON.
type recordJSON struct {
	Table  string
	Record leasehold.Record
	Holder holders.State
	Permit *permit // nil: it is not known to be one
}

func (r recordJSON) MarshalJSON() ([]byte, error) {
	return joinedJSON(struct {
		Table  string        `json:"table"`
		Holder holders.State `json:"holder,omitempty"`
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
	_, err = fmt.Fprintf(w, "{\"time\":%q,%s\n", wording.Time(at), record[1:])
	return err
}

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
	return wording.Age(now.Sub(r.GrantedAt))
}

// leaseFixed formats the lease in a record. Empty: it has none.
func leaseFixed(r leasehold.Record) string {
	if r.Lease == 0 {
		return ""
	}
	return wording.Duration(r.Lease)
}

// leaseText formats the lease in a record for people or, if it has none, the time
// until or since its expiry.
func leaseText(r leasehold.Record, now time.Time) string {
	left := r.ExpiresAt.Sub(now)
	switch {
	case r.Lease != 0 || r.ExpiresAt.IsZero() || r.Released:
		return leaseFixed(r)
	case left < 0:
		return wording.Age(-left) + " ago"
	}
	return "in " + wording.Age(left)
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
	return wording.Time(t)
}
