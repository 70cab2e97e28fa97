package stats

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestSpreadContainsMedianAndMinimumAndMaximum(t *testing.T) {
	for _, c := range []struct {
		runs []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{7}, Spread{Median: 7, Low: 7, High: 7, Runs: 1}},
		{[]float64{9, 1, 5}, Spread{Median: 5, Low: 1, High: 9, Runs: 3}},
		{[]float64{4, 1, 2, 90}, Spread{Median: 3, Low: 1, High: 90, Runs: 4}},
	} {
		lab.Want(t, fmt.Sprint(c.runs), Of(c.runs), c.want)
	}
}

func TestQuantileReturnsOneOfMeasuredValues(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // descending values, so that Quantile must sort them
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		lab.Want(t, fmt.Sprintf("quantile %v of 1 to 100", q), Quantile(hundred, q), want)
	}
	lab.Want(t, "quantile 0.99 of two values", Quantile([]float64{3, 8}, 0.99), 8)
	lab.Want(t, "quantile of no values", Quantile(nil, 0.5), 0)
}

func TestJainIndexIsOneOnlyForEqualShares(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{[]float64{5, 5, 5, 5}, 1},
		{[]float64{8, 0, 0, 0}, 0.25},
		{[]float64{1, 3}, 0.8},
		{[]float64{0, 0}, 0},
	} {
		lab.Want(t, fmt.Sprint(c.shares), Jain(c.shares), c.want)
	}
}

func TestWaitIsOvertakenByLaterWaitsThatAreGrantedEarlier(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	waits := []Wait{
		{at(0), at(9)},       // this wait began at 0; the waits that began at 1 and 3 overtook it
		{at(1), at(2)},       // no other wait overtook this one
		{at(3), at(4)},       // no other wait overtook this one
		{at(2), at(12)},      // the waits that began at 3 and 8 overtook this one
		{at(8), at(10)},      // no other wait overtook this one
		{at(5), time.Time{}}, // this wait was never granted; the wait that began at 8 overtook it
	}
	lab.Want(t, "overtaken", Overtaken(waits), []int{2, 0, 0, 2, 0, 1})
}
