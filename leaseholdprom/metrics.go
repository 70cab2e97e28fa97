// Package leaseholdprom exports leasehold's events to Prometheus. It is a module
// of its own, so that leasehold does not depend on Prometheus.
//
//	m := leaseholdprom.New(prometheus.DefaultRegisterer, nil)
//	locks, err := leasehold.New(db, leasehold.Config{Table: "locks", OnEvent: m.OnEvent})
//	...
//	m.Watch(locks)
//
// The project's docs/metrics.md explains each metric and what to alert on, and has
// a Grafana dashboard.
package leaseholdprom

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-go/leasehold"
)

// Metrics are leasehold_acquire_seconds, leasehold_held_seconds,
// leasehold_renew_seconds (histograms), leasehold_grants_total{how},
// leasehold_lost_total{reason}, leasehold_renew_errors_total,
// leasehold_throttled_total, leasehold_wait_errors_total,
// leasehold_gave_up_total, leasehold_done_total, leasehold_requests_total,
// leasehold_commits_total{outcome}, leasehold_release_errors_total (counters),
// and per watched client leasehold_held, leasehold_waiting,
// leasehold_min_remaining_seconds (gauges).
//
// how is "free", "taken_over" (from a dead holder) or "handed_over" (inside this
// process); reason is a leasehold.LostReason; outcome is "landed", "failed" (by a
// write's own condition), "lost", "unknown" or "refused". All series of a group start at zero
// with the group's first event.
//
// Metrics are safe for concurrent use. Several clients may share them: their
// values add up. To distinguish clients, create Metrics for each with a registerer
// from prometheus.WrapRegistererWith.
type Metrics struct {
	group   func(leasehold.Key) string
	acquire *prometheus.HistogramVec
	held    *prometheus.HistogramVec
	renew   *prometheus.HistogramVec

	grants      *prometheus.CounterVec
	lost        *prometheus.CounterVec
	renewErrors *prometheus.CounterVec
	throttled   *prometheus.CounterVec
	waitErrors  *prometheus.CounterVec
	gaveUp      *prometheus.CounterVec
	done        *prometheus.CounterVec
	requests    *prometheus.CounterVec
	commits     *prometheus.CounterVec
	unreleased  *prometheus.CounterVec

	groups  sync.Map // from group to *series
	watched *watched
}

// Buckets, in seconds. A grant takes one request, or a wait for another holder's
// work. A lock may be held for one request or for a night. A renewal is one request
// with a deadline of seconds.
var (
	acquireBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}
	heldBuckets    = []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600}
	renewBuckets   = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

// New registers the metrics with reg; nil: with no registry. Call it once per
// registry, and share the result between all clients: it panics, as promauto does,
// if reg already has metrics of these names.
//
// group returns a key's group for the label "group"; nil: no such label. It must
// not return the key itself, as there may be millions. It is called for every
// event, on the goroutine of the event, and must not block. With
// Config.SharedLease it is also called for the keys of sessions, which begin with
// "leasehold/session/".
func New(reg prometheus.Registerer, group func(leasehold.Key) string) *Metrics {
	var labels []string
	if group != nil {
		labels = []string{"group"}
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(labels[:len(labels):len(labels)], more...))
	}
	m := &Metrics{
		group:       group,
		acquire:     histogram("leasehold_acquire_seconds", "Time from the call to the grant, or to giving up, waiting included.", acquireBuckets),
		held:        histogram("leasehold_held_seconds", "Time from the grant to the release or the loss.", heldBuckets),
		renew:       histogram("leasehold_renew_seconds", "Time that a successful renewal took.", renewBuckets),
		grants:      counter("leasehold_grants_total", "Grants: of a free key, taken over from a dead holder, or handed over inside the process.", "how"),
		lost:        counter("leasehold_lost_total", "Locks lost while they were held.", "reason"),
		renewErrors: counter("leasehold_renew_errors_total", "Renewals that failed; they are retried while the lock is trusted."),
		throttled:   counter("leasehold_throttled_total", "Requests that DynamoDB throttled; they are retried."),
		waitErrors:  counter("leasehold_wait_errors_total", "Waits whose requests fail: counted once per wait, and then once a minute."),
		gaveUp:      counter("leasehold_gave_up_total", "Calls of Acquire that ended without a grant."),
		done:        counter("leasehold_done_total", "Calls with Once or Every that were granted nothing, as their work was done."),
		requests:    counter("leasehold_requests_total", "DynamoDB requests of grants, renewals, commits and releases."),
		commits:     counter("leasehold_commits_total", "Commits, by what became of their writes.", "outcome"),
		unreleased:  counter("leasehold_release_errors_total", "Releases that failed: the lease frees the key."),
		watched:     newWatched(),
	}
	if group == nil {
		m.seriesOf(leasehold.Key{})
	}
	if reg != nil {
		reg.MustRegister(collectors{m.acquire, m.held, m.renew, m.grants, m.lost, m.renewErrors, m.throttled, m.waitErrors, m.gaveUp, m.done, m.requests, m.commits, m.unreleased, m.watched})
	}
	return m
}

// collectors are registered together or not at all.
type collectors []prometheus.Collector

func (cs collectors) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range cs {
		c.Describe(ch)
	}
}

func (cs collectors) Collect(ch chan<- prometheus.Metric) {
	for _, c := range cs {
		c.Collect(ch)
	}
}

// OnEvent is the function for Config.OnEvent.
func (m *Metrics) OnEvent(_ context.Context, e leasehold.Event) {
	s := m.seriesOf(e.Key)
	switch e.Kind {
	case leasehold.EventGranted:
		s.acquire.Observe(e.Took.Seconds())
		s.grants[howOf(e)].Inc()
	case leasehold.EventGaveUp:
		s.acquire.Observe(e.Took.Seconds())
		s.gaveUp.Inc()
	case leasehold.EventDone:
		s.done.Inc()
	case leasehold.EventWaitError:
		s.waitErrors.Inc()
	case leasehold.EventRenewed:
		s.renew.Observe(e.Took.Seconds())
	case leasehold.EventRenewError:
		s.renewErrors.Inc()
	case leasehold.EventThrottled:
		s.throttled.Inc()
		return // the request is counted in the event of the call that it belongs to
	case leasehold.EventCommitted:
		s.commits[outcomeOf(e.Err)].Inc()
	case leasehold.EventLost, leasehold.EventReleased:
		s.end(e)
	}
	s.requests.Add(float64(e.Requests))
}

// series are the metrics of one group.
type series struct {
	acquire, held, renew             prometheus.Observer
	grants, commits                  map[string]prometheus.Counter // by how, by outcome
	lost                             *prometheus.CounterVec
	renewErrors, throttled, requests prometheus.Counter
	waitErrors, gaveUp, unreleased   prometheus.Counter
	done                             prometheus.Counter
}

// Values of the label "how".
const (
	free       = "free"
	takenOver  = "taken_over"
	handedOver = "handed_over"
)

func howOf(e leasehold.Event) string {
	switch {
	case e.Local:
		return handedOver
	case e.TookOver:
		return takenOver
	}
	return free
}

// Values of the label "outcome".
const (
	landed  = "landed"
	failed  = "failed"  // a write's own condition
	lost    = "lost"    // the grant had ended
	unknown = "unknown" // the writes may have landed
	refused = "refused" // by DynamoDB, or never sent
)

var outcomes = []string{landed, failed, lost, unknown, refused}

// outcomeOf says what became of the writes of a commit.
func outcomeOf(err error) string {
	var write *leasehold.CommitError
	switch {
	case err == nil:
		return landed
	case errors.Is(err, leasehold.ErrUnknownOutcome): // whatever else is known
		return unknown
	case errors.Is(err, leasehold.ErrLost):
		return lost
	case errors.As(err, &write):
		return failed
	}
	return refused
}

// seriesOf returns the series of a key's group. It creates all of them at the same
// time, at zero: a counter that appeared with its first loss would show no
// increase.
func (m *Metrics) seriesOf(k leasehold.Key) *series {
	var values []string
	var group string
	if m.group != nil {
		group = strings.ToValidUTF8(m.group(k), "\ufffd") // the registry refuses invalid UTF-8
		values = []string{group}
	}
	if s, ok := m.groups.Load(group); ok {
		return s.(*series)
	}
	s := &series{
		acquire: m.acquire.WithLabelValues(values...), held: m.held.WithLabelValues(values...), renew: m.renew.WithLabelValues(values...),
		grants: map[string]prometheus.Counter{}, renewErrors: m.renewErrors.WithLabelValues(values...),
		throttled: m.throttled.WithLabelValues(values...), requests: m.requests.WithLabelValues(values...),
		waitErrors: m.waitErrors.WithLabelValues(values...), gaveUp: m.gaveUp.WithLabelValues(values...), done: m.done.WithLabelValues(values...),
		commits: map[string]prometheus.Counter{}, unreleased: m.unreleased.WithLabelValues(values...),
	}
	for _, outcome := range outcomes {
		s.commits[outcome] = m.commits.WithLabelValues(append(values[:len(values):len(values)], outcome)...)
	}
	for _, how := range []string{free, takenOver, handedOver} {
		s.grants[how] = m.grants.WithLabelValues(append(values[:len(values):len(values)], how)...)
	}
	s.lost = m.lost
	if m.group != nil {
		s.lost = m.lost.MustCurryWith(prometheus.Labels{"group": group})
	}
	for _, reason := range []leasehold.LostReason{leasehold.LostExpired, leasehold.LostPaused, leasehold.LostReplaced, leasehold.LostBroken} {
		s.lost.WithLabelValues(string(reason))
	}
	m.groups.Store(group, s) // if another goroutine did the same, both have the same counters
	return s
}

// end counts the end of a grant, its loss, and a release that failed. A release may be the first to find
// the loss. Only the first event that ends a grant has Held above zero: a released
// event without it follows a loss, or a release that had no answer.
func (s *series) end(e leasehold.Event) {
	var lost *leasehold.LostError
	if errors.As(e.Err, &lost) && (e.Kind == leasehold.EventLost || e.Held > 0) {
		s.lost.WithLabelValues(string(lost.Reason)).Inc()
	}
	if e.Err != nil && !errors.Is(e.Err, leasehold.ErrLost) {
		s.unreleased.Inc()
	}
	if e.Held > 0 {
		s.held.Observe(e.Held.Seconds())
	}
}
