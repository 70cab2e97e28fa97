// Package metrics defines leasehold's metrics, and computes them from its events. All
// exporters use this package. Package leaseholdotel exports the metrics under the names given
// here. Package leaseholdprom uses underscores instead of dots, and adds "_total" to the
// names of counters.
package metrics

import (
	"errors"

	"github.com/leasehold-go/leasehold"
)

// Metric is the definition of a histogram or, if Buckets is nil, of a counter.
type Metric struct {
	Name, Unit, Help string
	Buckets          []float64 // upper bounds of the buckets in seconds; nil for a counter
	Label            string    // name of the label that distinguishes the metric's series; empty if it has only one series
	Values           []string  // label values; exporters create the series of these values at zero, before the first event
}

// The histograms. Their buckets cover the usual durations. An acquire lasts for one request or, if
// it must wait, until another holder has finished its work. A lock is held for a single request,
// for a whole night, or for any time between. A renewal must succeed within seconds.
var (
	Acquire = &Metric{Name: "leasehold.acquire_seconds", Unit: "s", Help: "Time from the call to the grant, or to giving up, waiting included.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}}
	Held = &Metric{Name: "leasehold.held_seconds", Unit: "s", Help: "Time from the grant to the release or the loss.",
		Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600}}
	Renew = &Metric{Name: "leasehold.renew_seconds", Unit: "s", Help: "Time that a successful renewal took.",
		Buckets: []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}}
)

// The counters.
var (
	Grants = &Metric{Name: "leasehold.grants", Unit: "{grant}", Label: "how", Values: []string{free, takenOver, handedOver},
		Help: "Grants: of a free key, taken over from a dead holder, or handed over inside the process."}
	Lost = &Metric{Name: "leasehold.lost", Unit: "{lock}", Label: "reason", Help: "Locks lost while they were held.",
		Values: []string{string(leasehold.LostExpired), string(leasehold.LostPaused), string(leasehold.LostReplaced), string(leasehold.LostBroken)}}
	RenewErrors = &Metric{Name: "leasehold.renew_errors", Unit: "{renewal}", Help: "Renewals that failed; they are retried while the lock is trusted."}
	Throttled   = &Metric{Name: "leasehold.throttled", Unit: "{request}", Help: "Requests that DynamoDB throttled; they are retried."}
	WaitErrors  = &Metric{Name: "leasehold.wait_errors", Unit: "{wait}", Help: "Waits whose requests fail: counted once per wait, and then once a minute."}
	GaveUp      = &Metric{Name: "leasehold.gave_up", Unit: "{call}", Help: "Calls of Acquire that ended without a grant."}
	Done        = &Metric{Name: "leasehold.done", Unit: "{call}", Help: "Calls with Once or Every that were granted nothing, as their work was done."}
	Requests    = &Metric{Name: "leasehold.requests", Unit: "{request}", Help: "DynamoDB requests of grants, renewals, commits and releases."}
	Commits     = &Metric{Name: "leasehold.commits", Unit: "{commit}", Label: "outcome", Help: "Commits, by the outcome of their writes.",
		Values: []string{landed, failed, lost, unknown, refused}}
	Moves         = &Metric{Name: "leasehold.region_moves", Unit: "{move}", Help: "Moves of requests to another Region, and back home."}
	ReleaseErrors = &Metric{Name: "leasehold.release_errors", Unit: "{release}", Help: "Releases that failed: they are repeated until the lease has ended."}
)

// All returns every metric.
func All() []*Metric {
	return []*Metric{Acquire, Held, Renew, Grants, Lost, RenewErrors, Throttled, WaitErrors, GaveUp, Done, Requests, Commits, ReleaseErrors, Moves}
}

// Sample is the effect of an event on a metric: an amount to add to a counter, or a value to
// observe in a histogram.
type Sample struct {
	Of    *Metric // metric that the event affects
	Value float64
	Label string // value of the metric's label; empty if the metric has no label
}

// Of returns the values that an event adds to the metrics.
func Of(e leasehold.Event) []Sample {
	var samples []Sample
	add := func(of *Metric, value float64, label string) { samples = append(samples, Sample{of, value, label}) }
	switch e.Kind {
	case leasehold.EventGranted:
		add(Acquire, e.Took.Seconds(), "")
		add(Grants, 1, How(e))
	case leasehold.EventGaveUp:
		add(Acquire, e.Took.Seconds(), "")
		add(GaveUp, 1, "")
	case leasehold.EventDone:
		add(Done, 1, "")
	case leasehold.EventWaitError:
		add(WaitErrors, 1, "")
	case leasehold.EventRenewed:
		add(Renew, e.Took.Seconds(), "")
	case leasehold.EventRenewError:
		add(RenewErrors, 1, "")
	case leasehold.EventRegion:
		add(Moves, 1, "")
	// The event at the end of a call reports all requests of the call, including throttled
	// ones. So a throttled event must not add to Requests.
	case leasehold.EventThrottled:
		return []Sample{{Of: Throttled, Value: 1}}
	case leasehold.EventCommitted:
		add(Commits, 1, outcomeOf(e.Err))
	case leasehold.EventLost, leasehold.EventReleased:
		if reason, ok := LossIn(e); ok {
			add(Lost, 1, string(reason))
		}
		if e.Err != nil && !errors.Is(e.Err, leasehold.ErrLost) {
			add(ReleaseErrors, 1, "")
		}
		if e.Held > 0 {
			add(Held, e.Held.Seconds(), "")
		}
	}
	add(Requests, float64(e.Requests), "")
	return samples
}

// LossIn returns why a lock was lost, and true, for the first event that reports the loss. This is
// an EventLost or, if a release discovers the loss, an EventReleased. If an earlier event has
// reported the loss, the EventReleased has a Held of zero, and LossIn returns false.
func LossIn(e leasehold.Event) (leasehold.LostReason, bool) {
	var lost *leasehold.LostError
	if !errors.As(e.Err, &lost) || e.Kind == leasehold.EventReleased && e.Held == 0 {
		return "", false
	}
	return lost.Reason, true
}

// Values of the label "how" of Grants.
const (
	free       = "free"
	takenOver  = "taken_over"  // taken over from a dead holder
	handedOver = "handed_over" // handed over within this process
)

// How returns the value of the label "how" for a granted event.
func How(e leasehold.Event) string {
	switch {
	case e.Local:
		return handedOver
	case e.TookOver:
		return takenOver
	}
	return free
}

// Values of the label "outcome" of Commits.
const (
	landed  = "landed"
	failed  = "failed"  // the caller's own condition on a write failed
	lost    = "lost"    // the grant had ended before the commit
	unknown = "unknown" // the writes may or may not have been applied
	refused = "refused" // DynamoDB rejected the writes, or they were never sent
)

// outcomeOf returns the value of the label "outcome" for the error of a commit.
func outcomeOf(err error) string {
	var write *leasehold.CommitError
	switch {
	case err == nil:
		return landed
	case errors.Is(err, leasehold.ErrUnknownOutcome): // checked first, because an error with an unknown outcome may also match a case below
		return unknown
	case errors.Is(err, leasehold.ErrLost):
		return lost
	case errors.As(err, &write):
		return failed
	}
	return refused
}
