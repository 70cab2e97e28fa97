package simulation

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestOperationWithSeveralFaultsCountsOnce(t *testing.T) {
	c := &process{run: &run{checker: newChecker()}, own: map[string]*operation{}, workers: map[string]string{}, lastAsked: map[string]asking{}}
	sends := func(ctx context.Context, op string, faults ...fault) {
		r := newRequest(c, lab.Call{Op: op, Body: []byte(`{"Key":{"key":{"S":"a"}}}`)})
		for _, f := range faults {
			c.counts(ctx, r, f)
		}
	}
	acquire, over := c.operation(t.Context(), "acquire")
	sends(acquire, "GetItem", requestLost, replyLost, none)
	sends(c.asks(t.Context(), "release"), "UpdateItem", none)
	over()
	// These requests belong to two operations that the client itself starts: a renewal that
	// is repeated until it succeeds, and the next renewal.
	sends(acquire, "UpdateItem", throttledOnce, requestLate, none, none)
	// A crash of the process counts as one fault of the operation in progress, even if
	// several of its requests fail. A request that fails in a crash outside any operation
	// is not counted.
	sends(c.asks(t.Context(), "commit"), "GetItem", none, inCrash, inCrash)
	sends(t.Context(), "GetItem", inCrash)

	want := map[string]int{"acquire": 1, "release": 1, "renewal in the background": 2, "commit": 1}
	if got := c.tally.Operations; !maps.Equal(got, want) {
		t.Errorf("operations %v, want %v", got, want)
	}
	want = map[string]int{"acquire": 1, "renewal in the background": 1, "commit": 1}
	if got := c.tally.Faulted; !maps.Equal(got, want) {
		t.Errorf("faulted %v, want %v", got, want)
	}
	if c.tally.Requests != 10 {
		t.Errorf("%d requests, want 10: %s", c.tally.Requests, fmt.Sprint(c.tally))
	}
}
