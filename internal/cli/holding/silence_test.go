package holding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

func TestAWaitInWhichNothingWasAnsweredIsNoRefusal(t *testing.T) {
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
