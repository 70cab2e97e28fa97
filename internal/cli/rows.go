package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

// row is one record of a listing.
type row struct {
	record   leasehold.Record
	liveness holders.State // with --check
	permit   *say.Permit   // nil: it is not known to be one
}

// listing says how to write records.
type listing struct {
	table    string
	json     bool
	terminal bool // a table for people
	columns  int  // of the terminal
	sortKeys bool // the table has sort keys
	expiry   layout.Expiry
	states   bool // released records are listed too
	checked  bool // with --check
}

// header returns the names of the columns. On a terminal, times are shown as ages.
func (l listing) header() []string {
	c := []string{"KEY"}
	if l.sortKeys {
		c = append(c, "SORT KEY")
	}
	lease := "LEASE"
	if l.expiry == layout.WallClock { // records have an expiry time instead of a lease
		lease = "EXPIRES"
	}
	c = append(c, "OWNER", "HELD", lease, "TOKEN")
	if l.states {
		c = append(c, "STATE")
	}
	if l.checked {
		c = append(c, "HOLDER")
	}
	return c
}

func (l listing) cells(r row, now time.Time) []string {
	rec := r.record
	c := []string{visible.Name(rec.Key.Partition)}
	if l.terminal && r.permit != nil {
		c[0] += " (permit)"
	}
	if l.sortKeys {
		c = append(c, visible.Name(rec.Key.Sort))
	}
	if l.terminal {
		lease := leaseText(rec, now)
		if rec.Session != "" && !rec.Released {
			lease += " shared"
		}
		c = append(c, wording.Owner(rec.Owner), heldFor(rec, now), lease)
	} else {
		c = append(c, wording.Cell(rec.Owner), timeText(rec.GrantedAt), cmp.Or(leaseFixed(rec), timeText(rec.ExpiresAt)))
	}
	c = append(c, tokenText(rec))
	if l.states {
		text := state(rec)
		if b := rec.Broken; l.terminal && rec.Released && b != nil && b.Token == rec.Token && b.Token != 0 {
			text += ", broken " + breakText(b, localTime)
		}
		c = append(c, text)
	}
	if l.checked {
		c = append(c, string(r.liveness))
	}
	for i := range c {
		c[i] = visible.Line(c[i])
	}
	return c
}

// mayShorten says which of cells need not be shown whole on a terminal: names, and
// what somebody has written.
func (l listing) mayShorten() []bool {
	var may []bool
	for _, c := range l.header() {
		may = append(may, c == "KEY" || c == "SORT KEY" || c == "OWNER" || c == "STATE")
	}
	return may
}

// colourOf marks a dead holder.
func colourOf(s holders.State) say.Colour {
	if s == holders.Dead {
		return say.Red
	}
	return ""
}

// write writes the rows: as an aligned table on a terminal, as tab-separated
// values in a pipe, or as one JSON object per line.
func (l listing) write(w io.Writer, rows []row, now time.Time) error {
	s := l.stream(w, rows, now)
	for _, r := range rows {
		if err := s.write(r, now); err != nil {
			return err
		}
	}
	return nil
}

// stream writes rows one by one. On a terminal its columns are as wide as rows that
// are known beforehand need them.
type stream struct {
	listing
	w      io.Writer
	widths []int
	begun  bool
}

func (l listing) stream(w io.Writer, likely []row, now time.Time) *stream {
	s := &stream{listing: l, w: w}
	if !l.terminal {
		return s
	}
	s.widen(l.header())
	for _, r := range likely {
		s.widen(l.cells(r, now))
	}
	return s
}

func (s *stream) widen(cells []string) {
	for i, c := range cells {
		if i == len(s.widths) {
			s.widths = append(s.widths, 0)
		}
		s.widths[i] = max(s.widths[i], utf8.RuneCountInString(c))
	}
}

func (s *stream) write(r row, now time.Time) error {
	switch {
	case s.json:
		return json.NewEncoder(s.w).Encode(say.Record{Table: s.table, Record: r.record, Holder: r.liveness, Permit: r.permit})
	case !s.terminal:
		_, err := fmt.Fprintln(s.w, strings.Join(s.cells(r, now), "\t"))
		return err
	}
	text := ""
	if !s.begun {
		s.begun, text = true, s.line(s.header())
	}
	text += s.line(s.cells(r, now))
	if to, ok := s.w.(*say.Output); ok && s.checked { // who lives is in the last column: a colour does not disturb the alignment
		parts := append([]any{strings.TrimSuffix(text, string(r.liveness)+"\n")}, colourOf(r.liveness).Of(string(r.liveness))...)
		return to.Show(append(parts, "\n")...)
	}
	_, err := io.WriteString(s.w, text)
	return err
}

// line aligns cells on one line of the terminal. The last is not padded.
func (s *stream) line(cells []string) string {
	cells, widths := wording.Narrow(cells, s.widths, s.mayShorten(), s.columns)
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(c), 0)+2))
		}
	}
	return b.String() + "\n"
}
