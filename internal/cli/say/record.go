package say

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Record is a record for get and ls: the table, the holder's liveness if it was observed,
// and the Record's own JSON.
type Record struct {
	Table  string
	Record leasehold.Record
	Holder holders.State
	Until  time.Time // the end of a dead holder's lease; zero if it is not known to be dead
}

// MarshalJSON returns the record's own JSON after the fields that the command adds.
func (r Record) MarshalJSON() ([]byte, error) {
	b, err := Joined(struct {
		Table  string        `json:"table"`
		Holder holders.State `json:"holder,omitempty"`
	}{r.Table, r.Holder}, r.Record)
	if held := r.heldFor(time.Now()); !r.Until.IsZero() {
		b = heldMs.ReplaceAll(b, fmt.Appendf(nil, "${1}%d", held.Milliseconds()))
	}
	return b, err
}

// heldMs matches the record's own field for how long it has been held, which counts until
// now.
var heldMs = regexp.MustCompile(`("heldMs":)\d+`)

// heldFor returns how long the record has been held; for a dead holder, until the end of its
// lease.
func (r Record) heldFor(now time.Time) time.Duration {
	if !r.Until.IsZero() && r.Until.Before(now) {
		now = r.Until
	}
	return max(now.Sub(r.Record.GrantedAt), 0)
}

// Observed returns the output for an observation.
func Observed(table string, o holders.Observation) Record {
	r := Record{Table: table, Record: o.Record, Holder: o.State}
	if o.State != holders.Dead {
		return r
	}
	r.Until = o.Beat.Until
	if written := o.Record.WrittenAt(); !written.IsZero() && !o.Shared && o.Record.Lease > 0 { // when it was written, which is before it was observed
		r.Until = written.Add(o.Record.Lease)
	}
	return r
}

// Joined returns the JSON of two values as one object. Both must have fields.
func Joined(first, second any) ([]byte, error) {
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

// Records returns unobserved records for output.
func Records(records []leasehold.Record) []Record {
	rows := make([]Record, len(records))
	for i, r := range records {
		rows[i].Record = r
	}
	return rows
}

// Item returns an item as DynamoDB JSON on one line, with sorted attributes.
func Item(item protocol.Item) ([]byte, error) {
	b, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		return nil, err
	}
	var attributes map[string]any // unmarshalled so that the attributes are sorted
	if err := json.Unmarshal(b, &attributes); err != nil {
		return nil, err
	}
	return json.Marshal(attributes)
}

// Indented returns an item's JSON for people.
func Indented(item []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, item, "", "  ") != nil {
		return item
	}
	return b.Bytes()
}

// Schema is the JSON Schema of the output of --json, with the promise about changes.
//
//go:embed schema.json
var Schema []byte
