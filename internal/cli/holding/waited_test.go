package holding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

func TestWaitIsTooShortForHolderWithLongerLease(t *testing.T) {
	waited := &failure.WaitedError{Wait: 5 * time.Second}
	held := func(r leasehold.Record) error { return &leasehold.HeldError{Holder: r, Err: waited} }
	lease := func(d time.Duration) leasehold.Record { return leasehold.Record{Lease: d} }
	for name, c := range map[string]struct {
		wanted Wanted
		err    error
		want   bool
	}{
		"a lease that is longer":             {Wanted{}, held(lease(6 * time.Second)), true},
		"a lease that was waited for":        {Wanted{}, held(lease(5 * time.Second)), false},
		"a shared lease":                     {Wanted{}, held(leasehold.Record{Lease: time.Second, Session: "s"}), true},
		"one of several keys":                {Wanted{Keys: []string{"a", "b"}}, held(lease(time.Second)), true},
		"one of several permits":             {Wanted{Permits: 2}, &allHeldError{"all held", held(lease(time.Second))}, true},
		"refused before the wait was over":   {Wanted{}, &leasehold.HeldError{Holder: lease(time.Minute)}, false},
		"ended by a signal":                  {Wanted{}, &leasehold.HeldError{Holder: lease(time.Minute), Err: &failure.SignalError{}}, false},
		"nobody was seen while it was asked": {Wanted{}, waited, false},
		"granted":                            {Wanted{}, nil, false},
	} {
		c.wanted.Wait = waited.Wait
		if got := c.wanted.wasTooShort(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRefusalAfterWaitContainsWholeWait(t *testing.T) {
	f := Wanted{Wait: 1500 * time.Millisecond}
	for took, want := range map[time.Duration]time.Duration{
		1501 * time.Millisecond: 1500 * time.Millisecond, 21700 * time.Millisecond: 21 * time.Second,
	} {
		var waited *failure.WaitedError
		if err := f.afterWait(&leasehold.HeldError{}, took); !errors.As(err, &waited) || waited.Wait != want || !failure.NotGranted(err) {
			t.Errorf("after %v: %v", took, err)
		}
	}
	if f.afterWait(nil, time.Second) != nil {
		t.Error("granted, and an error")
	}
}

func TestWaitWithoutAnyAnswerIsNoRefusal(t *testing.T) {
	waited := &failure.WaitedError{Wait: time.Second}
	for name, c := range map[string]struct {
		err     error
		answers int
		refused bool
	}{
		"no answer":                    {waited, 0, false},
		"an answer, and no holder yet": {waited, 1, true},
		"a holder, from another call":  {&leasehold.HeldError{Err: waited}, 0, true},
	} {
		err := afterSilence(c.err, c.answers, "locks", leasehold.Key{Partition: "job"})
		if got := failure.NotGranted(err); got != c.refused || !c.refused && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{nil, leasehold.ErrClosed, &leasehold.OpError{Op: "acquire", Err: errors.Join(waited, errors.New("refused"))}} {
		if got := afterSilence(err, 0, "locks", leasehold.Key{}); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
