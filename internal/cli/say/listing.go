package say

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Listing configures how records are written: as an aligned table on a terminal, as
// tab-separated values in a pipe, or as one JSON object per line.
type Listing struct {
	JSON     bool
	Terminal bool // write a table for people
	Columns  int  // number of columns of the terminal
	SortKeys bool // the table has sort keys
	Expiry   layout.Expiry
	States   bool // released records are listed too
	Checked  bool // the user gave --check
}

// cell is the content of one column for a record.
type cell struct {
	column, text string
	shown        bool
	long         bool // the value is a name, or text that another user wrote; a terminal may show only its beginning and end
}

// cells returns the cells of a record. On a terminal, times are shown as ages.
func (l Listing) cells(r Record, now time.Time) []cell {
	rec := r.Record
	key, owner, held, state := visible.Name(rec.Key.Partition), shortCell(rec.Owner), moment(rec.GrantedAt), stateOf(rec)
	column, lease := "LEASE", cmp.Or(leaseFixed(rec), moment(rec.ExpiresAt))
	if l.Expiry == layout.WallClock { // records have an expiry time instead of a lease
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

// Write writes the records.
func (l Listing) Write(w io.Writer, records []Record, now time.Time) error {
	rows := l.Rows(w, records, now)
	for _, r := range records {
		if err := rows.Write(r, now); err != nil {
			return err
		}
	}
	return nil
}

// Rows writes records one by one. On a terminal, the columns are wide enough for the
// records that are passed to Listing.Rows at the start.
type Rows struct {
	Listing
	w      io.Writer
	widths []int
	begun  bool
}

// Rows begins a listing. likely holds the records that will probably be written; they
// determine the width of the columns.
func (l Listing) Rows(w io.Writer, likely []Record, now time.Time) *Rows {
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

// Write writes one record.
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
	if to, ok := s.w.(*Output); ok && s.Checked { // a colour in the last column, which shows liveness, does not disturb the alignment
		parts := append([]any{strings.TrimSuffix(text, string(r.Holder)+"\n")}, r.colour().Of(string(r.Holder))...)
		return to.Show(append(parts, "\n")...)
	}
	_, err := io.WriteString(s.w, text)
	return err
}

// line aligns cells on one line of the terminal. It does not pad the last cell.
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

// colour returns Red if the record's holder is dead, and no colour otherwise.
func (r Record) colour() Colour {
	if r.Holder == holders.Dead {
		return Red
	}
	return ""
}

// Observe does what Observer.Observe does, and also writes messages about the expected time
// and cost. The parameter what names the records in these messages. If what is empty, no
// message is written.
func (m *Messages) Observe(ctx context.Context, o holders.Observer, records []leasehold.Record, what string) []holders.Observation {
	out := make([]holders.Observation, len(records))
	_ = m.watch(ctx, o, records, what, func(i int, found holders.Observation) error {
		out[i] = found
		return nil
	})
	return out
}

// watch does what Observer.Watch does, and also writes messages. It calls settled for each
// record, one at a time. It ends early if settled returns an error.
func (m *Messages) watch(ctx context.Context, o holders.Observer, records []leasehold.Record, what string, settled func(i int, found holders.Observation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var p *progress
	var failed error
	toGo := len(records)
	end := seconds.Each(func() {
		mu.Lock()
		defer mu.Unlock()
		if p != nil && failed == nil && toGo > 0 { // do not show progress after the last record: the line would appear below it
			p.show(m)
		}
	})
	o.Watch(ctx, records, func(planned holders.Plan) {
		mu.Lock()
		defer mu.Unlock()
		p = m.beginProgress(planned, what)
	}, func(i int, found holders.Observation) {
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
		if failed = settled(i, found); failed != nil {
			cancel()
		}
	})
	end()
	m.Clear()
	return failed
}

// Check observes the records. It calls settled with each record as soon as the state of its
// holder is known, or will clearly stay unknown. It omits released records unless all is
// true. A record may turn out to be damaged. Check reports such a record on stderr, and
// returns its error at the end.
func (m *Messages) Check(ctx context.Context, by holders.Observer, all bool, records []leasehold.Record, settled func(holders.Observation) error) error {
	held := 0
	for _, r := range records {
		if !r.Released {
			held++
		}
	}
	var bad, ended error
	err := m.watch(ctx, by, records, wording.Count(held, "holder", "holders"), func(_ int, found holders.Observation) error {
		switch {
		case errors.As(found.Err, new(*leasehold.RecordError)):
			m.Fail(found.Err)
			bad = found.Err
			return nil
		case found.Gone, found.Record.Released && !all:
			return nil
		case found.Err != nil:
			ended = found.Err // an error that all remaining records share
		}
		return settled(found)
	})
	return cmp.Or(err, ended, bad)
}

// progress is the progress of an observation.
type progress struct {
	plan  holders.Plan
	what  string
	began time.Time
	known int // number of holders whose state became known after the plan was made
}

// beginProgress announces the cost of the observation.
func (m *Messages) beginProgress(p holders.Plan, what string) *progress {
	now := &progress{plan: p, what: what, began: time.Now()}
	// Announce the cost on a line of its own, unless only one holder is observed and a line
	// of the terminal counts down. One holder costs too little for an announcement.
	if what != "" && (!m.Rewrites() || p.Holders > 1) {
		m.Text("observing %s for up to %s%s", what, wording.Age(durations.Sum(p.Longest, time.Second-1)), costOf(p))
	}
	now.show(m)
	return now
}

// costOf describes the cost of the reads. It mentions read units only if the user pays for
// them.
func costOf(p holders.Plan) string {
	if p.Requests == 0 { // nothing is read: the records read so far suffice, or there is no time for more reads
		return ""
	}
	text := ": at most " + wording.Count(p.Requests, "request", "requests")
	if p.Units > 0 {
		text += fmt.Sprintf(", about %.0f read units", p.Units)
	}
	return text
}

// show rewrites the progress line. It does nothing unless the output is a terminal.
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
