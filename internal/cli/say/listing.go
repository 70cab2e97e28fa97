package say

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// Listing configures how records are written: as an aligned table on a terminal, as
// tab-separated values in a pipe, or as one JSON object per line.
type Listing struct {
	JSON     bool
	Terminal bool // a table for people
	Columns  int  // columns of the terminal
	SortKeys bool // the table has sort keys
	Expiry   layout.Expiry
	States   bool // released records are listed too
	Checked  bool // with --check
}

// cell is the content of one column for a record.
type cell struct {
	column, text string
	shown        bool
	long         bool // a name or another user's text: a terminal may show only part of it
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

// Rows writes records one by one. On a terminal its columns are wide enough for records
// that are known beforehand.
type Rows struct {
	Listing
	w      io.Writer
	widths []int
	begun  bool
}

// Rows begins a listing.
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
		_, err := fmt.Fprintln(s.w, tabs(cells))
		return err
	}
	text := ""
	if !s.begun {
		s.begun = true
		text = s.line(cells, func(c cell) string { return c.column })
	}
	text += s.line(cells, func(c cell) string { return c.text })
	if to, ok := s.w.(*Output); ok && s.Checked { // liveness is in the last column: a colour does not disturb the alignment
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

func tabs(cells []cell) string {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = c.text
	}
	return strings.Join(texts, "\t")
}

// colour marks a dead holder.
func (r Record) colour() Colour {
	if r.Holder == holders.Dead {
		return Red
	}
	return ""
}
