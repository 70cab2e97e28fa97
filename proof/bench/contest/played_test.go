//go:build linux

package contest

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// The function "at" returns the time that is ms milliseconds after the start of the measurement.
func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

// The function "hundred" returns a measurement of two clients that contend for 100 ms. The first
// client was granted the key twice. The second client waited until the end and was never granted
// the key.
func hundred() played {
	return played{
		began: began, end: at(100), used: usage{Requests: 8, Writes: 4, Reads: 2}, busy: 0.5,
		sections: []section{
			{client: 0, due: at(0), granted: at(10), releasing: at(20)},
			{client: 1, due: at(1)},
			{client: 0, due: at(30), granted: at(45), releasing: at(55)},
		},
	}
}

func TestClosedLoopBenchmarkComputesWaitsFairnessAndCost(t *testing.T) {
	p := hundred()
	got := p.closedLoop(2)
	for figure, want := range map[string]float64{
		"section":    50,    // 100 ms divided by two sections
		"handover50": 25,    // released at 20 ms, granted at 45 ms
		"handover99": 25,    // equals the median, because there is only one hand-over
		"longest":    0.099, // in seconds: the second client waited from 1 ms to 100 ms
		"overtaken":  1,     // the first client's second section overtook the second client's wait
		"jain":       0.5,   // Jain's fairness index: one of two clients has all grants
		"requests":   4, "writes": 2, "reads": 1,
		"dollars": 2*writePrice + 1*readPrice,
		"busy":    50,
	} {
		lab.Want(t, figure, got[figure], want)
	}
}

func TestOpenLoopWaitIsMeasuredFromScheduledArrival(t *testing.T) {
	p := hundred()
	// This section of the first client was due at 5 ms, and the key was not granted for it.
	p.sections = append(p.sections, section{client: 0, due: at(5)})
	got := p.openLoop()
	for figure, want := range map[string]float64{
		"served": 50, "wait50": 15, "wait99": 99, "longest": 0.099,
	} {
		lab.Want(t, figure, got[figure], want)
	}
}

func TestGrantAfterEndOfMeasurementIsNotCounted(t *testing.T) {
	p := hundred()
	p.sections[2].granted, p.sections[2].releasing = at(101), at(111)
	lab.OK(t, p.alone())
	lab.Want(t, "ms per section, for one section", p.closedLoop(2)["section"], 100)
}

func TestBenchmarkDetectsTwoSimultaneousHolders(t *testing.T) {
	p := hundred()
	p.sections[1].granted, p.sections[1].releasing = at(15), at(25) // the second client is granted the key at 15 ms, although the first client holds the key until 20 ms
	lab.WantText(t, "two holders", p.alone(), "at once, for 5ms")
}

func TestArrivalTimesInRoundAreEqualForAllLibraries(t *testing.T) {
	const seconds = 1000
	first := arrivals(began, began.Add(seconds*time.Second), 4, 1)
	n := 0
	for _, due := range first {
		n += len(due)
		if !slices.IsSortedFunc(due, time.Time.Compare) || due[0].Before(began) || !due[len(due)-1].Before(began.Add(seconds*time.Second)) {
			t.Error("the arrival times are not sorted, or not within the period")
		}
	}
	const want = seconds * openRate
	// A 5 % deviation is almost eight standard deviations of a Poisson process.
	lab.WantRange(t, "number of arrivals", n, want*95/100, want*105/100)
	inRound := func(round int) bool {
		return slices.EqualFunc(first, arrivals(began, began.Add(seconds*time.Second), 4, round), slices.Equal)
	}
	lab.Want(t, "arrivals are those of another contender in the round", inRound(1), true)
	lab.Want(t, "arrivals are those of another round", inRound(2), false)
}
