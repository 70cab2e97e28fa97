package say

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Record is a record as get and ls show it. Its JSON contains the table, the Region that
// answered, the holder's liveness if it was observed, and the fields of the record's own
// JSON.
type Record struct {
	Table  string
	Region string // empty without --failover
	Record leasehold.Record
	Holder holders.State
	Until  time.Time // time when a dead holder's lease ended; zero if the holder is not known to be dead
}

// MarshalJSON returns the record's own JSON after the fields that the command adds.
func (r Record) MarshalJSON() ([]byte, error) {
	b, err := Joined(struct {
		Table  string        `json:"table"`
		Region string        `json:"region,omitempty"`
		Holder holders.State `json:"holder,omitempty"`
	}{r.Table, r.Region, r.Holder}, r.Record)
	if held := r.heldFor(time.Now()); !r.Until.IsZero() {
		b = heldMs.ReplaceAll(b, fmt.Appendf(nil, "${1}%d", held.Milliseconds()))
	}
	return b, err
}

// heldMs matches the field heldMs in the record's own JSON: how long the record has been
// held until now.
var heldMs = regexp.MustCompile(`("heldMs":)\d+`)

// heldFor returns how long the record has been held. If the holder is dead, the time ends
// when the holder's lease ended.
func (r Record) heldFor(now time.Time) time.Duration {
	if !r.Until.IsZero() && r.Until.Before(now) {
		now = r.Until
	}
	return max(now.Sub(r.Record.GrantedAt), 0)
}

// Observed returns the Record to print for an observation.
func Observed(table, region string, o holders.Observation) Record {
	r := Record{Table: table, Region: region, Record: o.Record, Holder: o.State}
	if o.State != holders.Dead {
		return r
	}
	r.Until = o.Beat.Until
	if written := o.Record.WrittenAt; !written.IsZero() && !o.Shared && o.Record.Lease > 0 { // count the lease from the last write, since the write came before the observation
		r.Until = written.Add(o.Record.Lease)
	}
	return r
}

// Joined returns the JSON of two values as one object. Both must have fields.
func Joined(first, second any) ([]byte, error) {
	head, err := json.Marshal(first)
	tail, failed := json.Marshal(second)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), tail[1:]...), nil
}

// Records returns the Records to print for records that were not observed.
func Records(table, region string, records []leasehold.Record) []Record {
	rows := make([]Record, len(records))
	for i, r := range records {
		rows[i] = Record{Table: table, Region: region, Record: r}
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

// Schema is the JSON Schema of the output of --json, with the promise about changes.
//
//go:embed schema.json
var Schema []byte

// Record writes one record, as JSON or with one line per field.
func (o *Output) Record(r Record, asJSON bool, now time.Time) error {
	if asJSON {
		return json.NewEncoder(o).Encode(r)
	}
	fields := slices.DeleteFunc(r.fields(o.Terminal, now), func(f [2]string) bool { return f[1] == "" })
	widest := 0
	for _, f := range fields {
		widest = max(widest, len(f[0]))
	}
	for _, f := range fields {
		line := []any{Tabbed(f[0], f[1])}
		if o.Terminal {
			var c Colour
			if f[0] == "holder" {
				c = r.colour()
			}
			line = append([]any{fmt.Sprintf("%-*s  ", widest, f[0])}, c.Of(visible.Line(f[1]))...)
		}
		if err := o.Show(append(line, "\n")...); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the names and values that a record shows. The names are those
// of its JSON; a field with an empty value is not shown.
func (r Record) fields(terminal bool, now time.Time) [][2]string {
	rec := r.Record
	owner, held, at := shortCell(rec.Owner), "", moment
	if terminal {
		owner, held, at = wording.Owner(rec.Owner), heldFor(r, now), localMoment
	}
	var renewed, released time.Time
	switch {
	case rec.Released:
		released = rec.WrittenAt
	case rec.Version != rec.Grant:
		renewed = rec.WrittenAt
	}
	suspended := "" // a suspension in the past is not shown
	if rec.NoQueueUntil.After(now) {
		suspended = at(rec.NoQueueUntil)
	}
	attributes := ""
	if len(rec.Attributes) > 0 {
		raw, _ := Item(rec.Attributes) // if Item fails, raw is empty: attributes that JSON cannot represent are not shown
		attributes = visible.Middle(string(raw), visible.Longest)
	}
	return [][2]string{
		{"region", r.Region},
		{"key", visible.Name(rec.Key.Partition)},
		{"sortKey", wording.Cell(rec.Key.Sort)},
		{"state", stateOf(rec)},
		{"holder", string(r.Holder)},
		{"owner", owner},
		{"token", wording.Token(rec.Token)},
		{"version", shortCell(rec.Version)},
		{"lease", leaseFixed(rec)},
		{"session", rec.Session},
		{"grantedAt", at(rec.GrantedAt)},
		{"held", held},
		{"renewedAt", at(renewed)},
		{"releasedAt", at(released)},
		{"expiresAt", at(rec.ExpiresAt)},
		{"former", formerText(rec.Former, at)},
		{"done", doneText(rec.Done, at)},
		{"waiting", waitingText(rec, at)},
		{"noQueueUntil", suspended},
		{"broken", brokenText(rec.Broken, at)},
		{"data", dataText(rec.Data)},
		{"attributes", attributes},
	}
}

// shortCell returns a cell with another user's name. The cell may show a shortened name,
// but the JSON output contains the whole name.
func shortCell(name string) string { return wording.Cell(visible.Middle(name, visible.Longest)) }

// stateOf returns a record's state with the name that its JSON uses.
func stateOf(r leasehold.Record) string {
	if r.Released {
		return "released"
	}
	return "held"
}

// heldFor returns how long a record has been held; empty if unknown.
func heldFor(r Record, now time.Time) string {
	if r.Record.GrantedAt.IsZero() || r.Record.Released {
		return ""
	}
	return wording.Age(r.heldFor(now))
}

// leaseFixed formats the lease in a record; empty if it has none.
func leaseFixed(r leasehold.Record) string {
	if r.Lease == 0 {
		return ""
	}
	return wording.Duration(r.Lease)
}

// Lease formats the lease in a record for people. If the record has no lease, Lease formats
// the time until or since its expiry.
func Lease(r leasehold.Record, now time.Time) string {
	left := r.ExpiresAt.Sub(now)
	switch {
	case r.Lease != 0 || r.ExpiresAt.IsZero() || r.Released:
		return leaseFixed(r)
	case left < 0:
		return wording.Age(-left) + " ago"
	}
	return "in " + wording.Age(left)
}

// localMoment formats a time for people; empty if unknown.
func localMoment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// moment formats a time for a pipe, in RFC 3339; empty if unknown.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return wording.Time(t)
}

// waitingText lists the waiters in the queue, the next one first; empty if there are none.
func waitingText(r leasehold.Record, at func(time.Time) string) string {
	var each []string
	for _, w := range r.Waiting {
		each = append(each, wording.Owner(w.Owner)+" since "+at(w.Since))
	}
	return strings.Join(each, ", ")
}

// doneText describes the last completed work, its owner and its time; empty if unknown.
func doneText(d *leasehold.Done, at func(time.Time) string) string {
	if d == nil {
		return ""
	}
	parts := []string{workText(d)}
	if d.Owner != "" {
		parts = append(parts, "by "+wording.Owner(d.Owner))
	}
	if when := at(d.At); when != "" {
		parts = append(parts, "at "+when)
	}
	if d.Token != 0 {
		parts = append(parts, fmt.Sprintf("token %d", d.Token))
	}
	return strings.Join(parts, ", ")
}

// workText names completed work. It uses the label or the period of the work.
func workText(d *leasehold.Done) string {
	if d.Once == "" {
		return visible.Period(d.Period)
	}
	return visible.Word(d.Once)
}

// formerText describes the previous holder and how its grant ended; empty if unknown.
func formerText(f *leasehold.End, at func(time.Time) string) string {
	if f == nil {
		return ""
	}
	var parts []string
	if f.Owner != "" {
		parts = append(parts, wording.Owner(f.Owner))
	}
	if f.Token != 0 {
		parts = append(parts, fmt.Sprintf("token %d", f.Token))
	}
	if until := at(f.At); until != "" {
		parts = append(parts, "until "+until)
	}
	return strings.Join(append(parts, f.How), ", ")
}

// brokenText names the token of a broken grant, and describes the break. It returns "" if
// no grant was broken.
func brokenText(b *leasehold.End, at func(time.Time) string) string {
	switch {
	case b == nil:
		return ""
	case b.Token == 0:
		return breakText(b, at)
	}
	return fmt.Sprintf("token %d %s", b.Token, breakText(b, at))
}

// breakText describes a break: the operator, the time and the reason.
func breakText(b *leasehold.End, at func(time.Time) string) string {
	text := "by " + wording.Owner(b.By) + " at " + at(b.At)
	if b.Reason != "" {
		text += ": " + visible.Word(b.Reason)
	}
	return text
}

// Grant names the grant in a record: the key, the owner, and the token if it has one.
func Grant(r leasehold.Record) string {
	text := wording.Key(r.Key) + " to " + wording.Owner(r.Owner)
	if r.Token != 0 {
		text += fmt.Sprintf(" (token %d)", r.Token)
	}
	return text
}

// dataText formats data: short text unchanged, any other data as its number of bytes.
func dataText(b []byte) string {
	const longest = 200
	switch {
	case len(b) == 0:
		return ""
	case len(b) > longest || !utf8.Valid(b):
		return fmt.Sprintf("%d bytes (see --data)", len(b))
	}
	return visible.Name(string(b))
}
