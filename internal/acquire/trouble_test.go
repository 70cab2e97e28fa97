package acquire_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestFailingRequestsOfWaitAreReportedAtOnceAndEveryMinute(t *testing.T) {
	throttled := &attempts.Failure{Cause: decide.Busy, Err: errThrottled}
	reset := &attempts.Failure{Cause: decide.Unreachable, Err: errReset}
	denied := &attempts.Failure{Cause: decide.Refused, Err: errDenied}
	type row struct {
		failure *attempts.Failure
		passes  bool // if set, a request is answered after each failure
		want    int  // number of reports that are expected for 121 failures, one a second
	}
	eachInWorld(t, map[string]row{
		"no answer":              {reset, false, 3},
		"no answer, and answers": {reset, true, 3},
		// Two reports, as the report at the first failure is omitted: throttling has an event of
		// its own.
		"throttled":              {throttled, false, 2},
		"throttled, and answers": {throttled, true, 0},
		"refused":                {denied, false, 0},
		"denied after an answer": {denied.After(true), false, 3},
	}, func(t *testing.T, w *world, r row) {
		c := w.client("a")
		var trouble acquire.Trouble
		for range 121 {
			trouble.Report(t.Context(), c.Acquirer, protocol.Key{Partition: "job"}, r.failure)
			if r.passes {
				trouble.Passed()
			}
			time.Sleep(time.Second)
		}
		if len(c.failing) != r.want {
			t.Errorf("%d reports, want %d", len(c.failing), r.want)
		}
	})
}

func TestRequestFailureAfterEndOfWaitIsNotReported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.client("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var trouble acquire.Trouble
		trouble.Report(ctx, c.Acquirer, protocol.Key{Partition: "job"}, &attempts.Failure{Cause: decide.Unreachable, Err: errors.New("cut off")})
		if len(c.failing) != 0 {
			t.Errorf("%v", c.failing)
		}
	})
}

func TestThrottledWaitReportsNoFailureIfOneRequestIsAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.client("a").one("job")
		c, began := w.client("b"), time.Now()
		c.wire.fate = func(n int, _ string, deliver func()) error {
			if after := time.Since(began); n > 1 && (after < 50*time.Second || after > 55*time.Second) {
				return errThrottled
			}
			h.renew()
			deliver()
			return nil
		}
		_, err := c.One(w.within(90*time.Second), c.want("job"))
		c.left()
		if !errors.Is(err, context.DeadlineExceeded) || c.throttle < 50 || len(c.failing) > 0 {
			t.Errorf("throttled %d times, told of %v: %v", c.throttle, c.failing, err)
		}
	})
}
