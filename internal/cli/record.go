package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// encodeChange writes a record as of a change: its JSON, after the time, with its
// state. Of a record that is gone it is what was known last.
func encodeChange(w io.Writer, table string, c change, at time.Time) error {
	record, err := json.Marshal(say.Record{Table: table, Record: c.record})
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
