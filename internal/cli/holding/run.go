package holding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// ReleaseLimit is for how long a signal is made to wait: for the release after CMD has
// ended, or for what becomes of a grant that is renewed or taken back. If the release fails,
// the key becomes free when the lease expires. Releasing a lost lock can only free the key
// sooner, so it gets less time.
const (
	ReleaseLimit     = 5 * time.Second
	lostReleaseLimit = time.Second
)

// Run runs CMD under what is held, and releases that. The error it returns carries the exit
// code.
func (h *Hold) Run(j process.Job) (process.Ended, error) {
	outer := h.outerValue()
	cmd := *j.Cmd // elect runs it again
	cmd.Env = h.environ(outer)
	j.Cmd = &cmd
	if h.first().Token() != 0 { // otherwise it would be that of other runs too
		j.Held = heldVariable + "=" + outerBegins(outer)
	}
	if seat := h.seeker.seat; seat != nil {
		resign := make(chan struct{})
		seat.OnStepDown(h.first(), func() { close(resign) })
		j.Resign = resign
	}
	h.running.Store(true)
	h.lengthen()
	ended, err := process.Run(j, h, h.renewals.renewed, h.seeker.signals, h.say())
	h.running.Store(false)
	if err != nil {
		_ = h.release(ReleaseLimit, false) // if it fails, the key becomes free when the lease expires
		return ended, err
	}
	return ended, h.finish(ended)
}

// lengthen renews a grant that another process has handed over in line, whose lease is short:
// CMD is stopped a grace before the end of trust, which could be at once. If it is not
// renewed, the first look at the lock says what that comes to.
func (h *Hold) lengthen() {
	lock, wanted := h.first(), h.seeker.wanted
	until := lock.TrustedUntil()
	if !wanted.InLine || time.Until(until) > wanted.Lease/2 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	_ = lock.Renew(ctx)
}

func (h *Hold) say() *say.Messages { return h.seeker.user.Say }

// Event returns an event of the first lock.
func (h *Hold) Event(kind string) say.Event {
	return say.NewEvent(kind, h.seeker.user.Now()).Of(h.first().Key(), h.first().Token())
}

// finish releases what is held and returns the error with the exit code.
func (h *Hold) finish(ended process.Ended) error {
	e := h.Event(say.Exited)
	e.ExitCode = &ended.Code
	h.say().Event(e)
	lost, why := h.Err(), h.renewals.why()
	limit := ReleaseLimit
	if lost != nil {
		limit = lostReleaseLimit
	}
	if ended.Stopped && lost == nil { // what could not renew it may not release it either
		h.say().Text("CMD has ended: trying to release %s, for up to %s", h, wording.Duration(limit))
	}
	done := ended.Code == 0 && !ended.Stopped && lost == nil
	if done && ended.Cut && h.seeker.wanted.Once != nil {
		// Many programs end with 0 when they are told to end, in the middle of their work.
		h.say().Always("%s: a signal came before the work had ended, so it does not count as done, and is done again", h)
	}
	done = done && !ended.Cut
	released := h.release(limit, done)
	switch {
	case lost == nil && errors.Is(released, leasehold.ErrLost):
		lost = released
	case lost == nil && released != nil && h.seeker.wanted.Once != nil && done:
		h.say().Text("%s: it may not be stored that this is done, so it may be done again: %s", h, failure.Text(released, h.seeker.store.Where()))
	case lost == nil && released != nil:
		h.say().Text("%s could not be released, and becomes free when its lease expires: %s",
			h, failure.Text(released, h.seeker.store.Where()))
	}
	switch {
	case ended.Stopped && lost == nil:
		return failure.Exit(failure.CodeLost, late(h.String(), why))
	case lost != nil:
		return failure.Exit(failure.CodeLost, stopped(lost, ended.Stopped))
	case ended.Code != 0:
		return failure.Exit(ended.Code, nil)
	}
	return nil
}

// release releases what is held. A signal does not interrupt it: it takes at most
// limit, and without it others would have to wait for the lease to expire. done: what is
// done once is done, and the record keeps that.
func (h *Hold) release(limit time.Duration, done bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if h.group != nil {
		return h.group.Release(ctx)
	}
	var opts []leasehold.ReleaseOption
	if done && h.seeker.wanted.Once != nil {
		opts = append(opts, leasehold.MarkDone())
	}
	return h.first().Release(ctx, opts...)
}

// stopped says that the lock was lost, and whether CMD was stopped.
func stopped(lost error, isStopped bool) error {
	if isStopped {
		return failure.Like(lost, lost.Error()+"; CMD was stopped")
	}
	return failure.Like(lost, lost.Error()+"; CMD had already ended")
}

// late says that CMD was stopped, and ended, before trust did: nobody else had been
// granted the lock, and a renewal may even have succeeded since. It is a loss all the
// same, as CMD was stopped. why says why the last renewal failed; "" if it did not.
func late(keys, why string) error {
	if why == "" {
		return failure.Like(leasehold.ErrLost, fmt.Sprintf("%s was not renewed before trust was about to end; CMD was stopped", keys))
	}
	return failure.Like(leasehold.ErrLost, fmt.Sprintf("%s could not be renewed before trust was about to end; CMD was stopped: %s", keys, why))
}
