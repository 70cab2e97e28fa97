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

// Record is a lock record as "get" and "ls" print it. Its JSON contains the fields of the
// lock record. It also contains the table, the Region that answered and, if the holder was
// observed, whether the holder is live.
type Record struct {
	Table  string
	Region string // empty without --failover
	Record leasehold.Record
	Holder holders.State
	Until  time.Time // when the lease of a dead holder expired; zero unless the holder is known to be dead
}

// MarshalJSON returns one JSON object: first the fields that the command adds, then the fields of
// r.Record.
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

// heldMs matches the field heldMs in the JSON of a leasehold.Record. The field contains for
// how many milliseconds the lock has been held.
var heldMs = regexp.MustCompile(`("heldMs":)\d+`)

// heldFor returns how long the lock has been held. For a dead holder, it returns how long the lock
// was held until the holder's lease expired.
func (r Record) heldFor(now time.Time) time.Duration {
	if !r.Until.IsZero() && r.Until.Before(now) {
		now = r.Until
	}
	return max(now.Sub(r.Record.GrantedAt), 0)
}

// Observed returns the output Record for the result o of an observation.
func Observed(table, region string, o holders.Observation) Record {
	r := Record{Table: table, Region: region, Record: o.Record, Holder: o.State}
	if o.State != holders.Dead {
		return r
	}
	r.Until = o.Beat.Until
	if written := o.Record.WrittenAt; !written.IsZero() && !o.Shared && o.Record.Lease > 0 { // the time of the holder's last write is known
		r.Until = written.Add(o.Record.Lease)
	}
	return r
}

// Joined returns one JSON object with the fields of two values, in the order of the
// parameters. Each value must have at least one field.
func Joined(first, second any) ([]byte, error) {
	head, err := json.Marshal(first)
	tail, failed := json.Marshal(second)
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), tail[1:]...), nil
}

// Item returns item as DynamoDB JSON on one line. Its attributes are sorted by name.
func Item(item protocol.Item) ([]byte, error) {
	b, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		return nil, err
	}
	var attributes map[string]any // json.Marshal sorts the keys of this map
	if err := json.Unmarshal(b, &attributes); err != nil {
		return nil, err
	}
	return json.Marshal(attributes)
}

// Schema is the JSON Schema of the output of --json. Its description says what later
// versions will not change.
//
//go:embed schema.json
var Schema []byte

// Record prints r, as JSON or with one line for each field.
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
		name := f[0] + "\t"
		if o.Terminal {
			name = fmt.Sprintf("%-*s  ", widest, f[0])
		}
		var c Colour
		if f[0] == "holder" {
			c = r.colour()
		}
		if err := o.Show(name, c, visible.Line(f[1]), "\n"); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the names and values of the fields to print. The names are the same as
// in the JSON. Fields with an empty value are not printed.
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
	suspended := "" // not printed if the queue was suspended only until a time in the past
	if rec.NoQueueUntil.After(now) {
		suspended = at(rec.NoQueueUntil)
	}
	attributes := ""
	if len(rec.Attributes) > 0 {
		raw, _ := Item(rec.Attributes) // raw stays empty if JSON cannot represent the attributes
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

// shortCell returns the text of a cell for a name that another user chose. It shortens a
// long name. The JSON contains the whole name.
func shortCell(name string) string { return wording.Cell(visible.Middle(name, visible.Longest)) }

// stateOf returns "released" or "held".
func stateOf(r leasehold.Record) string {
	if r.Released {
		return "released"
	}
	return "held"
}

// heldFor returns how long the lock has been held, as text. It returns "" if this is
// unknown or the lock is free.
func heldFor(r Record, now time.Time) string {
	if r.Record.GrantedAt.IsZero() || r.Record.Released {
		return ""
	}
	return wording.Age(r.heldFor(now))
}

// leaseFixed returns the lease duration that a record contains, as text. It returns "" if the
// record contains none.
func leaseFixed(r leasehold.Record) string {
	if r.Lease == 0 {
		return ""
	}
	return wording.Duration(r.Lease)
}

// Lease returns the lease duration that a record contains, as text. If a held record contains only
// a time of expiry, Lease returns the time until the expiry ("in 5s") or since it ("5s ago").
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

// localMoment formats t in the local time zone. It returns "" for the zero time.
func localMoment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// moment formats t in RFC 3339 and UTC. It returns "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return wording.Time(t)
}

// waitingText lists the waiters in the queue of a record, the head first. It returns "" if
// the queue is empty.
func waitingText(r leasehold.Record, at func(time.Time) string) string {
	var each []string
	for _, w := range r.Waiting {
		each = append(each, wording.Owner(w.Owner)+" since "+at(w.Since))
	}
	return strings.Join(each, ", ")
}

// doneText describes the work that was last completed under the lock: its label or period,
// its owner, the time and the token. It returns "" if d is nil.
func doneText(d *leasehold.Done, at func(time.Time) string) string {
	if d == nil {
		return ""
	}
	parts := phrases{workText(d)}
	parts.add(d.Owner != "", "by "+wording.Owner(d.Owner))
	parts.add(!d.At.IsZero(), "at "+at(d.At))
	parts.add(d.Token != 0, fmt.Sprintf("token %d", d.Token))
	return strings.Join(parts, ", ")
}

// phrases are the parts of the text about a former grant or about completed work.
type phrases []string

// add appends the phrase if its value is known.
func (p *phrases) add(known bool, phrase string) {
	if known {
		*p = append(*p, phrase)
	}
}

// workText returns the label of completed work (--once), or the start of its period
// (--every).
func workText(d *leasehold.Done) string {
	if d.Once == "" {
		return visible.Period(d.Period)
	}
	return visible.Word(d.Once)
}

// formerText describes the previous holder and how its grant ended. It returns "" if f is
// nil.
func formerText(f *leasehold.End, at func(time.Time) string) string {
	if f == nil {
		return ""
	}
	var parts phrases
	parts.add(f.Owner != "", wording.Owner(f.Owner))
	parts.add(f.Token != 0, fmt.Sprintf("token %d", f.Token))
	parts.add(!f.At.IsZero(), "until "+at(f.At))
	return strings.Join(append(parts, f.How), ", ")
}

// brokenText describes b, the last break that a record contains, and adds the fencing token of the
// broken grant. It returns "" if b is nil.
func brokenText(b *leasehold.End, at func(time.Time) string) string {
	switch {
	case b == nil:
		return ""
	case b.Token == 0:
		return breakText(b, at)
	}
	return fmt.Sprintf("token %d %s", b.Token, breakText(b, at))
}

// breakText describes the break b: by which operator, when and why.
func breakText(b *leasehold.End, at func(time.Time) string) string {
	text := "by " + wording.Owner(b.By) + " at " + at(b.At)
	if b.Reason != "" {
		text += ": " + visible.Word(b.Reason)
	}
	return text
}

// Grant returns text that names the grant in a record: its key, its owner and, if it has
// one, its fencing token.
func Grant(r leasehold.Record) string {
	text := r.Key.String() + " to " + wording.Owner(r.Owner)
	if r.Token != 0 {
		text += fmt.Sprintf(" (token %d)", r.Token)
	}
	return text
}

// dataText returns the data of a record as text. For data that is long or not text, it
// returns only the number of bytes.
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
