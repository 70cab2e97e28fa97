package decide

import "slices"

// StillToName returns the versions that the condition of the holder's next write must name,
// oldest first. tried contains the versions of attempts of one grant that have had no
// answer, oldest first. shown is the version in the record when the client last read it.
//
// If tried contains shown, the result is shown and all later versions, whose attempts
// DynamoDB may still apply. DynamoDB can no longer apply earlier attempts, since their
// conditions name versions that never come back. If tried does not contain shown, DynamoDB
// may still apply all attempts.
//
// most is the largest number of versions in the result. If there are more, StillToName
// omits the oldest versions, but never shown. That is safe: if DynamoDB applies an omitted
// attempt after all, it rejects the next write, whose condition does not name that attempt.
// No key is granted twice.
//
// Package attempts explains why a condition names attempts that have had no answer.
func StillToName(tried []string, shown string, most int) []string {
	first := slices.Index(tried, shown)
	if first < 0 {
		return slices.Clone(tried[max(0, len(tried)-most):])
	}
	later := tried[first+1:]
	return append([]string{shown}, later[max(0, len(later)-most+1):]...)
}
