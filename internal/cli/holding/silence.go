package holding

import (
	"context"
	"errors"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
)

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
