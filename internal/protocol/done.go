package protocol

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Once names the work of a grant if that work is to be done once. The name is a label or a
// period. The zero Once names no work: the grant may be repeated.
type Once struct {
	Label  string    // the work is done if this label was the last one marked
	Period time.Time // start of the period, in whole milliseconds; the work is done if the mark has this period or a later one; zero with a label
}

// None reports whether o names no work.
func (o Once) None() bool { return o == Once{} }

// IsDone reports whether the mark d shows that the work of o is done. It returns false if d
// is nil.
func (o Once) IsDone(d *Done) bool {
	switch {
	case d == nil || o.None():
		return false
	case o.Label != "":
		return d.Once == o.Label
	}
	return !d.Period.IsZero() && !d.Period.Before(o.Period)
}

// Done is the mark of a record: the last work done under its key. The release that ends the
// work writes it, so a record has it only if the lock was held until then.
type Done struct {
	Once   string    // label of the work; empty if the work had a period
	Period time.Time // the start of the period; zero if the work had a label
	Owner  string    // holder under whose grant the work was done
	At     time.Time // when the work was done, by the holder's clock
	Token  int64     // fencing token of the grant
}

// ShortestPeriod is the shortest period that Every accepts.
const ShortestPeriod = time.Second

// PeriodOf returns the period of the given length that contains now. Periods are counted
// from the epoch, 1970-01-01 00:00 UTC: if they divide a day, one begins with each day in
// UTC.
func PeriodOf(now time.Time, length time.Duration) Once {
	ms, step := now.UnixMilli(), length.Milliseconds()
	past := ms % step
	if past < 0 {
		past += step
	}
	return Once{Period: time.UnixMilli(ms - past).UTC()}
}

// LongestLabel is the maximum length of a label in bytes: a label stays in the record.
const LongestLabel = 256

// LabelProblem returns the problem with a label, or "" if it is valid.
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

// PeriodProblem returns the problem with the length of a period, or "" if it is valid.
func PeriodProblem(length time.Duration) string {
	switch {
	case length < ShortestPeriod:
		return fmt.Sprintf("a period of %v: at least %v", length, ShortestPeriod)
	case length%time.Millisecond != 0:
		return fmt.Sprintf("a period of %v: use whole milliseconds", length)
	}
	return ""
}
