package protocol

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Once is what a grant is for, if that is to be done once: what a label names, or the
// work of a period. The zero Once is for anything, as often as it is granted.
type Once struct {
	Label  string    // done if it was the last label that was marked
	Period time.Time // its start, in whole milliseconds: done if this period is, or a later one; zero: there is a label
}

// None reports whether the grant is for anything.
func (o Once) None() bool { return o == Once{} }

// IsDone reports whether d says that it is done; nil says nothing.
func (o Once) IsDone(d *Done) bool {
	switch {
	case d == nil || o.None():
		return false
	case o.Label != "":
		return d.Once == o.Label
	}
	return !d.Period.IsZero() && !d.Period.Before(o.Period)
}

// Done is the mark of a record: what was done last under its key. The release that ends
// the work writes it, so it is there only if the lock was held until then.
type Done struct {
	Once   string    // its label; empty: it was the work of a period
	Period time.Time // when that began; zero: it was a label's
	Owner  string    // whose grant it was
	At     time.Time // by that client's clock
	Token  int64     // of the grant
}

// ShortestPeriod is the shortest period that work is done once in.
const ShortestPeriod = time.Second

// PeriodOf is the period of this length in which now is. Periods are counted from the
// epoch, 1970-01-01 00:00 UTC: those that divide a day begin with each day in UTC.
func PeriodOf(now time.Time, length time.Duration) Once {
	ms, step := now.UnixMilli(), length.Milliseconds()
	past := ms % step
	if past < 0 {
		past += step
	}
	return Once{Period: time.UnixMilli(ms - past).UTC()}
}

// LongestLabel is the most bytes of a label: it stays in the record.
const LongestLabel = 256

// LabelProblem says what is wrong with a label; "": nothing.
func LabelProblem(label string) string {
	switch {
	case label == "":
		return "the label is empty"
	case len(label) > LongestLabel:
		return fmt.Sprintf("the label has %d bytes: use at most %d", len(label), LongestLabel)
	case !utf8.ValidString(label):
		return "the label is not UTF-8"
	}
	return ""
}

// PeriodProblem says what is wrong with the length of a period; "": nothing.
func PeriodProblem(length time.Duration) string {
	switch {
	case length < ShortestPeriod:
		return fmt.Sprintf("a period of %v: at least %v", length, ShortestPeriod)
	case length%time.Millisecond != 0:
		return fmt.Sprintf("a period of %v: use whole milliseconds", length)
	}
	return ""
}
