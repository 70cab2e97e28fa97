package holding

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

// A waiter that waits for less than a lease never sees a dead holder's lease expire, however
// often it tries. So after such a short wait, the keys are requested as with -n: a holder
// that appears dead is observed for its lease.

// wasTooShort reports whether the wait has ended with err because of a holder that was not
// observed for its lease. A lock under a shared lease does not show the length of the lease,
// and the error of several keys shows only one holder.
func (w Wanted) wasTooShort(err error) bool {
	var held *leasehold.HeldError
	var waited *failure.WaitedError
	if !errors.As(err, &held) || !errors.As(err, &waited) || failure.Interrupted(err) != nil {
		return false
	}
	return w.Permits > 1 || len(w.Keys) > 1 || held.Holder.Session != "" || held.Holder.Lease > w.Wait
}

// withoutWait returns w with the options of -n.
func (w Wanted) withoutWait() Wanted {
	w.NoWait, w.Wait = true, 0
	return w
}

// afterWait adds the total waiting time to err, the result of the request after a wait.
func (w Wanted) afterWait(err error, took time.Duration) error {
	if held := (*leasehold.HeldError)(nil); errors.As(err, &held) && held.Err == nil {
		held.Err = &failure.WaitedError{Wait: max(w.Wait, took.Truncate(time.Second))}
	}
	return err
}

// afterSilence returns err, which has ended a wait, if requests were answered during it. If
// none was, it is unknown whether the key is held: a script that skips work of another
// process must not treat that as an answer.
func afterSilence(err error, answers int, table string, key leasehold.Key) error {
	var waited *failure.WaitedError
	if answers > 0 || !errors.As(err, &waited) || !failure.NotGranted(err) || errors.Is(err, leasehold.ErrHeld) {
		return err // the key is held, or the error itself describes the failure
	}
	return &leasehold.OpError{Op: "acquire", Table: table, Key: key, Err: context.DeadlineExceeded}
}
