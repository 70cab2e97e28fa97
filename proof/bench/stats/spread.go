package stats

import (
	"math"
	"slices"
)

// Spread is what several runs measured of one thing.
type Spread struct {
	Median, Low, High float64
	Runs              int
}

// Of returns the spread of what was measured, the zero Spread of nothing. The
// median of an even number is the mean of the two in the middle.
func Of(measured []float64) Spread {
	if len(measured) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(measured))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1], Runs: n}
}

// Quantile returns the smallest of the values that at least a share q of them do
// not exceed (the nearest rank), 0 of nothing.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
