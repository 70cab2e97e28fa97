package stats

import (
	"math"
	"slices"
)

// Spread summarizes the measurements of several runs.
type Spread struct {
	Median, Low, High float64
	Runs              int
}

// Of returns the median, the lowest and the highest of the measurements, or the zero Spread
// if there are no measurements. The median of an even number of values is the mean of the
// middle two.
func Of(measured []float64) Spread {
	if len(measured) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(measured))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1], Runs: n}
}

// Quantile returns the q-quantile of values by the nearest-rank method: the smallest v for which at
// least a fraction q of the values is <= v. It returns 0 if there are no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
