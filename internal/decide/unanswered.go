package decide

import "slices"

// StillToName returns the versions that the next condition must name, oldest
// first. tried are the versions of one grant's attempts without an answer; a read
// has shown the version shown.
//
// If shown is one of tried, the result is shown and all later ones: they may
// still be applied. Earlier ones cannot, since their conditions name versions that are
// gone. If shown is not among tried, all of them may still be applied.
//
// A condition can name at most most versions, so the oldest are dropped, but never
// shown. That is safe: if a dropped attempt is applied after all, the next write, which
// does not name it, is refused. Nothing is granted twice.
//
// Package attempts says what an attempt without an answer is, and why it is named.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
