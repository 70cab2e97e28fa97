package say

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Listing describes how to print many records: as an aligned table (terminal), tab-separated
// values (pipe), or one JSON object a line.
type Listing struct {
	JSON     bool
	Terminal bool          // true to print an aligned table
	Columns  int           // width of the terminal in characters
	SortKeys bool          // true if the table has a sort key, so that the column is shown
	Expiry   layout.Expiry // how the layout's records expire; decides between the columns LEASE and EXPIRES
	States   bool          // true if released records are printed too, so that the state is shown
	Checked  bool          // true with --check, so that the holder's state is shown
}

// cell is one column of one record.
type cell struct {
	column, text string
	shown        bool
	long         bool // true for a name or text from another user; a narrow terminal shows only its beginning and end
}

// cells returns the columns of a record. For a terminal, a time is shown as an age, such as
// 3m12s.
func (l Listing) cells(r Record, now time.Time) []cell {
	rec := r.Record
	key, owner, held, state := visible.Name(rec.Key.Partition), shortCell(rec.Owner), moment(rec.GrantedAt), stateOf(rec)
	column, lease := "LEASE", cmp.Or(leaseFixed(rec), moment(rec.ExpiresAt))
	if l.Expiry == layout.WallClock { // in such a layout, records contain the time of expiry instead of a lease
		column = "EXPIRES"
	}
	if l.Terminal {
		owner, held, lease = wording.Owner(rec.Owner), heldFor(r, now), Lease(rec, now)
		if says := visible.Remark(rec.Data); says != "" && !rec.Released {
			owner += ": " + says
		}
		if rec.Session != "" && !rec.Released {
			lease += " shared"
		}
		if b := rec.Broken; rec.Released && b != nil && b.Token == rec.Token && b.Token != 0 {
			state += ", broken " + breakText(b, localMoment)
		}
		if d := rec.Done; rec.Released && d != nil && d.Token == rec.Token {
			state = "done: " + workText(d)
		}
	}
	cells := slices.DeleteFunc([]cell{
		{"KEY", key, true, true},
		{"SORT KEY", visible.Name(rec.Key.Sort), l.SortKeys, true},
		{"OWNER", owner, true, true},
		{"HELD", held, true, false},
		{column, lease, true, false},
		{"TOKEN", wording.Token(rec.Token), true, false},
		{"STATE", state, l.States, true},
		{"HOLDER", string(r.Holder), l.Checked, false},
	}, func(c cell) bool { return !c.shown })
	for i := range cells {
		cells[i].text = visible.Line(cells[i].text)
	}
	return cells
}

// Write prints all records.
func (l Listing) Write(w *Output, records []Record, now time.Time) error {
	rows := l.Rows(w, records, now)
	for _, r := range records {
		if err := rows.Write(r, now); err != nil {
			return err
		}
	}
	return nil
}

// Rows prints records one by one. On a terminal, the columns are wide enough for the
// records that were passed to Listing.Rows.
type Rows struct {
	Listing
	w      *Output
	widths []int
	begun  bool
}

// Rows returns a Rows that prints to w. The parameter "likely" contains the records that will
// probably be printed. The columns are as wide as the longest values in these records.
func (l Listing) Rows(w *Output, likely []Record, now time.Time) *Rows {
	s := &Rows{Listing: l, w: w}
	if !l.Terminal {
		return s
	}
	for _, c := range l.cells(Record{}, now) {
		s.widths = append(s.widths, len(c.column))
	}
	for _, r := range likely {
		for i, c := range l.cells(r, now) {
			s.widths[i] = max(s.widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return s
}

// Write prints the record r.
func (s *Rows) Write(r Record, now time.Time) error {
	if s.JSON {
		return json.NewEncoder(s.w).Encode(r)
	}
	cells := s.cells(r, now)
	if !s.Terminal {
		var texts []string
		for _, c := range cells {
			texts = append(texts, c.text)
		}
		_, err := fmt.Fprintln(s.w, Tabbed(texts...))
		return err
	}
	text := ""
	if !s.begun {
		s.begun = true
		text = s.line(cells, func(c cell) string { return c.column })
	}
	text += s.line(cells, func(c cell) string { return c.text })
	if s.Checked { // colours only the last column, so colour sequences do not disturb the alignment
		return s.w.Show(strings.TrimSuffix(text, string(r.Holder)+"\n"), r.colour(), string(r.Holder), "\n")
	}
	return s.w.Show(text)
}

// line returns the cells as one line of a terminal, padded to the widths of the columns.
// The last cell is not padded.
func (s *Rows) line(cells []cell, text func(cell) string) string {
	var texts []string
	var long []bool
	for _, c := range cells {
		texts, long = append(texts, text(c)), append(long, c.long)
	}
	texts, widths := wording.Narrow(texts, s.widths, long, s.Columns)
	var b strings.Builder
	for i, c := range texts {
		b.WriteString(c)
		if i < len(texts)-1 {
			b.WriteString(strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(c), 0)+2))
		}
	}
	return b.String() + "\n"
}

// colour returns Red if the holder is dead, and "" otherwise.
func (r Record) colour() Colour {
	if r.Holder == holders.Dead {
		return Red
	}
	return ""
}

// Observe observes whether the holder of the record renews, and prints how long this may take. The
// parameter "what" describes the holder in that text. If the output is no terminal, "what" may be
// empty: Observe then prints nothing.
func (m *Messages) Observe(ctx context.Context, o holders.Observer, record leasehold.Record, what string) (result holders.Observation) {
	_ = m.watch(ctx, o, []leasehold.Record{record}, what, func(found holders.Observation) error {
		result = found
		return nil
	})
	return result
}

// watch observes holders and prints messages as Observe does. It calls the function "settled" for
// each record as soon as the result for this record is known. These calls never overlap. watch
// stops at the first error that "settled" returns, and returns this error.
func (m *Messages) watch(ctx context.Context, o holders.Observer, records []leasehold.Record, what string, settled func(holders.Observation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var p *progress
	var failed error
	toGo := len(records)
	end := m.EachSecond(func() {
		mu.Lock()
		defer mu.Unlock()
		if p != nil && failed == nil && toGo > 0 { // after the last record, the progress line would appear below the result
			p.show(m)
		}
	})
	o.Watch(ctx, records, func(planned holders.Plan) {
		mu.Lock()
		defer mu.Unlock()
		p = m.beginProgress(planned, what)
	}, func(_ int, found holders.Observation) {
		mu.Lock()
		defer mu.Unlock()
		toGo--
		if p != nil && found.State != "" {
			p.known++
		}
		if failed != nil {
			return
		}
		m.Clear()
		if failed = settled(found); failed != nil {
			cancel()
		}
	})
	end()
	return failed
}

// Check observes whether the holders of records renew, and calls "settled" as watch does. It skips
// deleted records and, if "all" is false, released records. It prints the error of each damaged
// record. If the observation and "settled" succeed, Check returns the last of these errors.
func (m *Messages) Check(ctx context.Context, by holders.Observer, all bool, records []leasehold.Record, settled func(holders.Observation) error) error {
	held := slices.DeleteFunc(slices.Clone(records), func(r leasehold.Record) bool { return r.Released })
	var bad, ended error
	err := m.watch(ctx, by, records, wording.Count(len(held), "holder", "holders"), func(found holders.Observation) error {
		switch {
		case errors.As(found.Err, new(*leasehold.RecordError)):
			m.Fail(found.Err)
			bad = found.Err
			return nil
		case found.Gone, found.Record.Released && !all:
			return nil
		case found.Err != nil:
			ended = found.Err // every remaining record has this error too
		}
		return settled(found)
	})
	return cmp.Or(err, ended, bad)
}

// progress contains what the progress line of an observation shows.
type progress struct {
	plan  holders.Plan
	what  string
	began time.Time
	known int // number of holders found live or dead since the plan was made
}

// beginProgress prints how long the observation may take and what it costs.
func (m *Messages) beginProgress(p holders.Plan, what string) *progress {
	now := &progress{plan: p, what: what, began: time.Now()}
	// Print the time and the cost on a line of their own. For a single holder, a terminal
	// shows only the progress line, because observing one holder costs little.
	if what != "" && (!m.Rewrites() || p.Holders > 1) {
		m.Text("observing %s for up to %s%s", what, wording.Age(durations.Sum(p.Longest, time.Second-1)), costOf(p))
	}
	now.show(m)
	return now
}

// costOf returns the cost of the plan as text: the number of requests and, if read units cost
// money, also the number of read units.
func costOf(p holders.Plan) string {
	if p.Requests == 0 { // no request is planned: the records read so far are enough, or no time is left
		return ""
	}
	text := ": at most " + wording.Count(p.Requests, "request", "requests")
	if p.Units > 0 {
		text += fmt.Sprintf(", about %.0f read units", p.Units)
	}
	return text
}

// show rewrites the progress line on a terminal. Elsewhere it does nothing.
func (p *progress) show(m *Messages) {
	if !m.Rewrites() {
		return
	}
	text := "observing " + p.what
	if p.plan.Holders > 1 {
		text += fmt.Sprintf(", %d to go", p.plan.Holders-p.known)
	}
	m.Rewrite(text + ", at most " + wording.Age(durations.Sum(durations.Less(p.plan.Longest, time.Since(p.began)), time.Second-1)) + " left")
}
