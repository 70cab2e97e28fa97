package protocol

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Once names work that clients are to do once under a lock. The name is a label or a
// period. The zero Once names no work: grants do not depend on work that is marked as done.
type Once struct {
	Label  string    // label of the work; the work counts as done if the done mark in the record has the same label
	Period time.Time // start of the period, in whole milliseconds; the work counts as done if the done mark in the record has this period or a later one; zero if Label is set
}

// None reports whether o names no work.
func (o Once) None() bool { return o == Once{} }

// IsDone reports whether the mark d means that the work o is done. It returns false if d is
// nil, or if o names no work.
func (o Once) IsDone(d *Done) bool {
	switch {
	case d == nil || o.None():
		return false
	case o.Label != "":
		return d.Once == o.Label
	}
	return !d.Period.IsZero() && !d.Period.Before(o.Period)
}

// Done is the done mark in a record. It names the work that a client last completed under
// the lock. The release at the end of the work writes the mark. So a record has the mark
// only if the client held the lock until the work was done.
type Done struct {
	Once   string    // label of the work; empty if a period names the work
	Period time.Time // start of the period; zero if a label names the work
	Owner  string    // owner of the grant under which the work was done
	At     time.Time // time when the work was done, by the holder's clock
	Token  int64     // fencing token of the grant
}

// ShortestPeriod is the shortest period that PeriodProblem accepts.
const ShortestPeriod = time.Second

// PeriodOf returns the period of the given length that contains now. The first period
// begins at 1970-01-01 00:00 UTC. So if a day is a multiple of the length, a period begins
// at each midnight in UTC.
func PeriodOf(now time.Time, length time.Duration) Once {
	ms, step := now.UnixMilli(), length.Milliseconds()
	past := ms % step
	if past < 0 {
		past += step
	}
	return Once{Period: time.UnixMilli(ms - past).UTC()}
}

// LongestLabel is the maximum length in bytes of a label of work. It is short, as the
// record keeps the label.
const LongestLabel = 256

// LabelProblem returns the problem with a label of work, or "" if the label is valid.
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

// PeriodProblem returns the problem with the length of a period, or "" if the length is
// valid.
func PeriodProblem(length time.Duration) string {
	switch {
	case length < ShortestPeriod:
		return fmt.Sprintf("a period of %v: at least %v", length, ShortestPeriod)
	case length%time.Millisecond != 0:
		return fmt.Sprintf("a period of %v: use whole milliseconds", length)
	}
	return ""
}
