package stats

import (
	"slices"
	"time"
)

// Jain returns Jain's index of fairness (R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984). The
// index is 1 if all shares are equal, and 1/n if only one of n shares is not zero. Jain
// returns 0 if all shares are zero.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Wait is one wait of a client for a key: when it began, and when the key was granted.
type Wait struct {
	Asked   time.Time
	Granted time.Time // time of the grant; zero if the key was not granted before the end of the run
}

// Overtaken returns, for each wait, the number of other waits that began later but were granted
// the key earlier.
func Overtaken(waits []Wait) []int {
	granted := slices.DeleteFunc(slices.Clone(waits), func(w Wait) bool { return w.Granted.IsZero() })
	times := make([]int, len(waits))
	for i, w := range waits {
		for _, other := range granted {
			if other.Asked.After(w.Asked) && (w.Granted.IsZero() || other.Granted.Before(w.Granted)) {
				times[i]++
			}
		}
	}
	return times
}
