package leaseholdotel_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/eventtest"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// spansNamed returns the spans with the given name, in the order in which they ended.
func spansNamed(spans tracetest.SpanStubs, name string) []tracetest.SpanStub {
	return slices.DeleteFunc(slices.Clone(spans), func(s tracetest.SpanStub) bool { return s.Name != name })
}

// value returns an attribute of a span, or "" if the span does not have it.
func value(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestSpanIsCreatedForEachAcquireHoldAndCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		ctx, caller := rig.tracer.Tracer("test").Start(t.Context(), "caller")
		life := eventtest.Live(ctx, t, rig.OnEvent)
		caller.End()
		spans := rig.spans.GetSpans()
		for _, s := range spans {
			if s.Name == "caller" {
				continue
			}
			lab.Want(t, "parent of "+s.Name+" of "+value(s, "leasehold.key"), s.Parent.SpanID(), caller.SpanContext().SpanID())
			if value(s, "leasehold.key") == "" || value(s, "leasehold.token") == "" || value(s, "leasehold.requests") == "" {
				t.Errorf("%s has the attributes %v", s.Name, s.Attributes)
			}
		}

		hows := map[string]int{}
		for _, s := range spansNamed(spans, "leasehold.acquire") {
			hows[value(s, "leasehold.how")]++
			lab.Want(t, "status of a grant", s.Status.Code, codes.Unset)
		}
		for how, n := range life.Grants {
			lab.Want(t, "grants "+how, hows[how], n)
		}

		var held []time.Duration
		lost, unreleased := map[leasehold.LostReason]int{}, 0
		for _, s := range spansNamed(spans, "leasehold.hold") {
			held = append(held, s.EndTime.Sub(s.StartTime))
			reason := value(s, "leasehold.reason")
			if failed := s.Status.Code == codes.Error; reason != "" && !failed || failed != (len(s.Events) == 1) {
				t.Errorf("a hold lost as %q: status %v, %d events", reason, s.Status, len(s.Events))
			} else if reason != "" {
				lost[leasehold.LostReason(reason)]++
			} else if failed {
				unreleased++
			}
		}
		slices.Sort(held)
		if len(held) != len(life.Held) {
			t.Fatalf("%d holds, want %d", len(held), len(life.Held))
		}
		for i, d := range held {
			if (d - life.Held[i]).Abs() > time.Millisecond {
				t.Errorf("a hold of %v, want %v", d, life.Held[i])
			}
		}
		for reason, n := range life.Lost {
			lab.Want(t, string(reason), lost[reason], n)
		}

		lab.Want(t, "holds that could not be released", unreleased, life.Unreleased)
		if commits := spansNamed(spans, "leasehold.commit"); len(commits) != 2 ||
			commits[0].Status.Code != codes.Error || !strings.HasPrefix(commits[0].Status.Description, "leasehold: ") ||
			len(commits[0].Events) != 1 || commits[0].Events[0].Name != "exception" || commits[1].Status.Code != codes.Unset {
			t.Errorf("%d commits: %v", len(commits), commits)
		}
	})
}

func TestTracingSpanStartsAndEndsWithItsOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		w := eventtest.New(t)
		c, wire := w.Client(rig.OnEvent)
		other, _ := w.Client(nil)
		began := time.Now()
		start := func(name string) (context.Context, func(string)) {
			ctx, span := rig.tracer.Tracer("test").Start(t.Context(), name)
			// End the caller's span at once, as a caller may return while its lock is still held. Even
			// so, the spans of the lock's operations must be children of the caller's span.
			span.End()
			return ctx, func(what string) {
				t.Helper()
				s := spansNamed(rig.spans.GetSpans(), what)
				if len(s) != 1 || s[0].Parent.SpanID() != span.SpanContext().SpanID() {
					t.Errorf("%s: %d spans, not under %s", what, len(s), name)
				}
			}
		}
		span := func(name string, from, to time.Duration) {
			t.Helper()
			s := spansNamed(rig.spans.GetSpans(), name)
			if len(s) != 1 {
				t.Fatalf("%s: %d spans", name, len(s))
			}
			lab.Want(t, name+" is from and to", [2]time.Duration{s[0].StartTime.Sub(began), s[0].EndTime.Sub(began)}, [2]time.Duration{from, to})
		}
		until := func(at time.Duration) { time.Sleep(time.Until(began.Add(at))) }

		theirs := w.Acquire(t.Context(), other, "job")
		until(time.Second)
		acquiring, acquired := start("acquiring")
		granted := make(chan *leasehold.Lock, 1)
		go func() { granted <- w.Acquire(acquiring, c, "job") }()
		until(10 * time.Second)
		w.Release(theirs)
		lock := <-granted
		since := time.Since(began)
		acquired("leasehold.acquire")
		span("leasehold.acquire", time.Second, since)

		until(time.Minute)
		committing, committed := start("committing")
		wire.Cut()
		result := make(chan error, 1)
		go func() { result <- lock.Commit(committing, nil) }()
		synctest.Wait() // wait until the commit has been sent and the network has lost its request
		wire.Mend()
		lab.OK(t, <-result)
		answered := time.Since(began)
		if answered == time.Minute {
			t.Fatal("the commit was not repeated")
		}
		committed("leasehold.commit")
		span("leasehold.commit", time.Minute, answered)

		until(2 * time.Minute)
		wire.Cut()
		go func() { result <- lock.Commit(t.Context(), nil) }()
		synctest.Wait()
		freed := make(chan error, 1)
		go func() { freed <- lock.Release(t.Context()) }() // sends its request once the commit has ended
		synctest.Wait()
		wire.Mend()
		lab.OK(t, <-result)
		if err := <-freed; err != nil || time.Since(began) == 2*time.Minute {
			t.Fatalf("released at %v: %v", time.Since(began), err)
		}
		acquired("leasehold.hold")
		span("leasehold.hold", since, 2*time.Minute)
	})
}

func TestKeysAppearInSpansButNotInMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t)
		rig.OnEvent(t.Context(), leasehold.Event{
			Kind: leasehold.EventGranted, Time: time.Now(), Key: leasehold.Key{Partition: "customer/42", Sort: "invoices"}, Token: 7, Requests: 1,
		})
		eventtest.Live(t.Context(), t, rig.OnEvent)
		first := rig.spans.GetSpans()[0]
		found := [3]string{value(first, "leasehold.key"), value(first, "leasehold.sort_key"), value(first, "leasehold.token")}
		lab.Want(t, "key, sort key and token", found, [3]string{"customer/42", "invoices", "7"})
		allowed := func(name string, attributes attribute.Set) {
			for _, a := range attributes.ToSlice() {
				if a.Key != "how" && a.Key != "reason" && a.Key != "outcome" {
					t.Errorf("%s has %s=%s", name, a.Key, a.Value.String())
				}
			}
		}
		for _, m := range collect(t, rig.reader) {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					allowed(m.Name, p.Attributes)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					allowed(m.Name, p.Attributes)
				}
			}
		}
	})
}
