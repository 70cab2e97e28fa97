package decide

import "slices"

// StillToName returns those of the versions tried for one grant, oldest first,
// that a condition must name when a read has shown one of them: that one, and
// what was tried after it, which may land yet. What was tried before it cannot,
// since its own condition names versions that are gone. Of more than most, which
// a condition may not take, the oldest are given up: should one land yet, the
// write that does not name it is refused, and nothing is doubled. What is shown
// always stays; a version that is none of them settles nothing.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
