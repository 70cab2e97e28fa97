package decide

import "slices"

// StillToName returns the versions that the next condition must name, oldest first. tried
// has the versions of the attempts of one grant that have no answer. shown is the version
// that a read has shown.
//
// If shown is in tried, the result is shown and all later versions: their attempts may
// still be applied. Earlier attempts cannot be applied, since their conditions name
// versions that are gone. If shown is not in tried, all attempts may still be applied.
//
// The parameter most is the largest number of versions that a condition can name. If there
// are more, the oldest are dropped, but shown is never dropped. That is safe: if a dropped
// attempt is applied after all, the next write does not name it and is rejected. Nothing is
// granted twice.
//
// Package attempts explains attempts without an answer, and why a condition names them.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
