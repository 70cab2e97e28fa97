package holding

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// Whoever waits for less than a lease never sees a dead holder's pass, however often he
// comes. So after a wait that was too short for that, the keys are asked for as with -n:
// a holder that looks dead is watched for its lease.

// wasTooShort reports whether the wait has ended with err because of a holder that was not
// watched for its lease. A lock under a shared lease does not show how long that is, and
// one of several keys does not show the others'.
func (w Wanted) wasTooShort(err error) bool {
	var held *leasehold.HeldError
	var waited *failure.WaitedError
	if !errors.As(err, &held) || !errors.As(err, &waited) || failure.Interrupted(err) != nil {
		return false
	}
	return w.Permits > 1 || len(w.Keys) > 1 || held.Holder.Session != "" || held.Holder.Lease > w.Wait
}

// withoutWait is w for asking as with -n.
func (w Wanted) withoutWait() Wanted {
	w.NoWait, w.Wait = true, 0
	return w
}

// afterWait says in err, the answer to what was asked after a wait, how long it all took.
func (w Wanted) afterWait(err error, took time.Duration) error {
	if held := (*leasehold.HeldError)(nil); errors.As(err, &held) && held.Err == nil {
		held.Err = &failure.WaitedError{Wait: max(w.Wait, took.Truncate(time.Second))}
	}
	return err
}

// afterSilence is err, which has ended a wait, if requests were answered in it. If none was,
// nobody knows whether the key is held: a script that skips what another is at must not
// take that for an answer.
func afterSilence(err error, answers int, table string, key leasehold.Key) error {
	var waited *failure.WaitedError
	if answers > 0 || !errors.As(err, &waited) || !failure.NotGranted(err) || errors.Is(err, leasehold.ErrHeld) {
		return err // held, or it says itself what has failed
	}
	return &leasehold.OpError{Op: "acquire", Table: table, Key: key, Err: context.DeadlineExceeded}
}
