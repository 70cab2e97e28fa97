package eventtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/regions"
)

// Sample is the state of one series of a metric.
type Sample struct {
	Value float64 // value of the series; in a histogram, the sum of the observations
	Count uint64  // number of observations in a histogram; zero for other metrics
}

// Metrics is the metrics adapter that a test exercises.
type Metrics struct {
	OnEvent func(context.Context, leasehold.Event)
	Watch   func(*leasehold.Client)
	// Series returns the state of every series. A key of the map consists of the name and the
	// label values of the series, such as lost{broken}. The name lacks the prefix and the suffix
	// that the adapter adds to names.
	Series func() map[string]Sample
}

// Want fails the test unless got contains every series in want with the same state. The value
// of a histogram may differ by a millisecond for each observation.
func Want(t *testing.T, got, want map[string]Sample) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok || g.Count != w.Count || math.Abs(g.Value-w.Value) > .001*float64(1+w.Count) {
			t.Errorf("%s is %v, want %v", name, g, w)
		}
	}
}

// Exercise tests a metrics adapter. The function start must return a new adapter that has recorded
// no event, and is configured without a label for groups of keys.
func Exercise(t *testing.T, start func(t *testing.T) Metrics) {
	for name, test := range map[string]func(t *testing.T, m Metrics){
		"events":                     countsEvents,
		"outcomes of commits":        countsOutcomesOfCommits,
		"moves between Regions":      countsMovesBetweenRegions,
		"gauges of watched clients":  gaugesCoverWatchedClients,
		"wait for unreachable table": countsFailuresOfWait,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, start(t)) })
		})
	}
	t.Run("clients by Region", func(t *testing.T) { gaugeCountsClientsByRegion(t, start(t)) })
	t.Run("unused watched client", func(t *testing.T) { watchDoesNotKeepClient(t, start(t)) })
}

func countsEvents(t *testing.T, m Metrics) {
	life := Live(t.Context(), t, m.OnEvent)
	held := Sample{Count: uint64(len(life.Held))}
	for _, d := range life.Held {
		held.Value += d.Seconds()
	}
	got := m.Series()
	Want(t, got, map[string]Sample{
		"held_seconds":        held,
		"renew_errors":        {Value: float64(life.RenewErrors)},
		"throttled":           {Value: float64(life.Throttled)},
		"requests":            {Value: float64(life.Requests)},
		"lost{expired}":       {Value: 1},
		"lost{paused}":        {},
		"lost{replaced}":      {},
		"lost{broken}":        {Value: 2},
		"grants{free}":        {Value: 7},
		"grants{taken_over}":  {Value: 1},
		"grants{handed_over}": {Value: 1},
		"commits{landed}":     {Value: float64(life.Commits["landed"])},
		"commits{failed}":     {Value: float64(life.Commits["failed"])},
		"commits{lost}":       {Value: float64(life.Commits["lost"])},
		"commits{unknown}":    {Value: float64(life.Commits["unknown"])},
		"commits{refused}":    {Value: float64(life.Commits["refused"])},
		"release_errors":      {Value: float64(life.Unreleased)},
		"done":                {Value: float64(life.Done)},
	})
	if life.Renewals == 0 || life.RenewErrors == 0 {
		t.Errorf("%d renewals and %d failed renewals, want more of both", life.Renewals, life.RenewErrors)
	}
	if h := got["renew_seconds"]; h.Count != uint64(life.Renewals) {
		t.Errorf("renew_seconds is %v after %d renewals", h, life.Renewals)
	}
	if h := got["acquire_seconds"]; h.Count != 9 || h.Value < 300 { // one of the nine calls waited until a lease of 300 s expired
		t.Errorf("acquire_seconds is %v", h)
	}
}

func countsOutcomesOfCommits(t *testing.T, m Metrics) {
	unknown := &leasehold.OpError{Op: "commit", Err: fmt.Errorf("%w: %w", leasehold.ErrUnknownOutcome, &leasehold.LostError{})}
	for _, err := range []error{nil, &leasehold.CommitError{}, &leasehold.LostError{}, unknown, errors.New("AccessDeniedException")} {
		m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventCommitted, Err: err})
	}
	for _, outcome := range []string{"landed", "failed", "lost", "unknown", "refused"} {
		if got := m.Series()["commits{"+outcome+"}"]; got != (Sample{Value: 1}) {
			t.Errorf("%s: %v", outcome, got)
		}
	}
}

func countsMovesBetweenRegions(t *testing.T, m Metrics) {
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-2", Err: errors.New("no such host")})
	m.OnEvent(t.Context(), leasehold.Event{Kind: leasehold.EventRegion, Region: "us-east-1"})
	Want(t, m.Series(), map[string]Sample{"region_moves": {Value: 2}})
}

func gaugesCoverWatchedClients(t *testing.T, m Metrics) {
	if _, ok := m.Series()["held"]; ok {
		t.Error("gauges exist, but no client is watched")
	}
	w := New(t)
	a, wire := w.Client(m.OnEvent)
	b, _ := w.Client(m.OnEvent)
	idle, _ := w.Client(m.OnEvent)
	notWatched, _ := w.Client(m.OnEvent)
	for _, c := range []*leasehold.Client{a, b, idle, idle, a} {
		m.Watch(c)
	}
	Want(t, m.Series(), map[string]Sample{"held": {}, "waiting": {}})
	if s, ok := m.Series()["min_remaining_seconds"]; ok {
		t.Errorf("min_remaining_seconds is %v, but no lock is held", s.Value)
	}

	for key, c := range map[string]*leasehold.Client{"x": a, "y": a, "z": b, "v": notWatched} {
		w.Acquire(t.Context(), c, key)
	}
	wire.Cut() // from now on, the first client cannot renew its locks
	time.Sleep(2 * time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	waits := lab.Go(func() error { return lab.ErrorOf(b.Acquire(ctx, "v")) })
	synctest.Wait()
	Want(t, m.Series(), map[string]Sample{
		"held":                  {Value: 3},
		"waiting":               {Value: 1},
		"min_remaining_seconds": {Value: 150}, // the lease of 300 s, less the safety margin and the time elapsed since the renewal
	})

	stop()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	wire.Mend()
	for _, c := range []*leasehold.Client{a, b, idle, notWatched} {
		lab.OK(t, c.Close(t.Context()))
	}
	Want(t, m.Series(), map[string]Sample{"held": {}, "waiting": {}})
}

func countsFailuresOfWait(t *testing.T, m Metrics) {
	c, wire := New(t).Client(m.OnEvent)
	wire.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	defer cancel()
	if _, err := c.Acquire(ctx, "job"); err == nil {
		t.Fatal("granted")
	}
	Want(t, m.Series(), map[string]Sample{
		"wait_errors":     {Value: 3}, // the client reports the failure at once, and again after each minute
		"gave_up":         {Value: 1},
		"acquire_seconds": {150, 1},
	})
	wire.Mend()
	lab.OK(t, c.Close(t.Context()))
}

func gaugeCountsClientsByRegion(t *testing.T, m Metrics) {
	db := regions.New(dynamodb.New(dynamodb.Options{Region: "us-east-1"}), dynamodb.New(dynamodb.Options{Region: "us-east-2"}))
	for i := range 3 {
		c := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks"}))(t)
		defer c.Close(t.Context())
		m.Watch(c)
		if i == 0 {
			lab.OK(t, c.Close(t.Context())) // a closed client adds nothing to the gauges
		}
	}
	Want(t, m.Series(), map[string]Sample{"region_clients{us-east-1}": {Value: 2}})
}

func watchDoesNotKeepClient(t *testing.T, m Metrics) {
	w := New(t)
	var client weak.Pointer[leasehold.Client]
	func() {
		c, _ := w.Client(m.OnEvent)
		client = weak.Make(c)
		m.Watch(c)
	}()
	// Collect garbage repeatedly: the stack frame of an interrupted goroutine may keep the
	// client reachable for a while.
	for range 10 {
		runtime.GC()
	}
	if client.Value() != nil {
		t.Error("Watch keeps a client that is no longer used")
	}
	Want(t, m.Series(), map[string]Sample{"held": {}})
}
