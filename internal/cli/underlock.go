package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/watchdog"
)

// releaseLimit bounds the release after CMD has ended. If it fails, the key
// becomes free when the lease expires. Releasing a lost lock can only free the
// key sooner, so it gets less time.
const (
	releaseLimit     = 5 * time.Second
	lostReleaseLimit = time.Second
)

// underLock is CMD under a lock, as its user hears of it.
type underLock struct {
	app      *app
	store    *store.Store
	hold     hold
	renewals *renewals
}

// runUnder runs CMD under a lock and releases that. The error it returns carries the exit
// code.
func (a *app) runUnder(s *store.Store, h hold, signals *process.Signals, renewals *renewals, j process.Job) (process.Ended, error) {
	u := &underLock{a, s, h, renewals}
	cmd := *j.Cmd // elect runs it again
	cmd.Env = a.commandEnv(s, h)
	j.Cmd = &cmd
	if h.first().Token() != 0 { // otherwise it would be that of other runs too
		if begins := heldBegins(cmd.Env); begins != "" {
			j.Held = heldVariable + "=" + begins
		}
	}
	name := cmd.Args[0]
	ended, err := process.Run(j, h, renewals.renewed, signals, u)
	if err != nil {
		_ = u.release(releaseLimit) // if it fails, the key becomes free when the lease expires
		return ended, startError(name, err)
	}
	return ended, u.finish(ended)
}

// Note says what is no error.
func (u *underLock) Note(format string, args ...any) { u.app.say.Note(format, args...) }

// Stopping says that CMD is stopped, and why.
func (u *underLock) Stopping() {
	u.app.say.Event(u.event(say.Stopping))
	if u.hold.Err() != nil {
		u.app.say.Text("%s is lost: stopping CMD", u.hold)
	} else {
		u.app.say.Text("trust in %s is about to end: stopping CMD", u.hold)
	}
}

// Outlived says which processes outlive CMD.
func (u *underLock) Outlived(by []watchdog.Process, text string) {
	e := u.event(say.Background)
	for _, p := range by {
		e.Processes = append(e.Processes, say.Process{PID: p.PID, Name: p.Name})
	}
	u.app.say.Tell(e, "%s", text)
}

// event returns an event of the first lock.
func (u *underLock) event(kind string) say.Event {
	first := u.hold.first()
	return say.NewEvent(kind, u.app.Now()).Of(first.Key(), first.Token())
}

// finish releases the lock and returns the error with the exit code.
func (u *underLock) finish(ended process.Ended) error {
	e := u.event(say.Exited)
	e.ExitCode = &ended.Code
	u.app.say.Event(e)
	lost, why := u.hold.Err(), u.renewals.why()
	limit := releaseLimit
	if lost != nil {
		limit = lostReleaseLimit
	}
	if ended.Stopped && lost == nil { // what could not renew it may not release it either
		u.app.say.Text("CMD has ended: trying to release %s, for up to %s", u.hold, wording.Duration(limit))
	}
	released := u.release(limit)
	switch {
	case lost == nil && errors.Is(released, leasehold.ErrLost):
		lost = released
	case lost == nil && released != nil:
		u.app.say.Text("%s could not be released, and becomes free when its lease expires: %s",
			u.hold, failure.Text(released, u.store.Where()))
	}
	switch {
	case ended.Stopped && lost == nil:
		return failure.Exit(failure.CodeLost, &lateError{u.hold.String(), why})
	case lost != nil:
		return failure.Exit(failure.CodeLost, &stoppedError{lost, ended.Stopped})
	case ended.Code != 0:
		return failure.Exit(ended.Code, nil)
	}
	return nil
}

// release releases the lock. A signal does not interrupt it: it takes at most
// limit, and without it others would have to wait for the lease to expire.
func (u *underLock) release(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return u.hold.release(ctx)
}

// stoppedError says that the lock was lost, and whether CMD was stopped.
type stoppedError struct {
	lost    error
	stopped bool
}

func (e *stoppedError) Error() string {
	if e.stopped {
		return e.lost.Error() + "; CMD was stopped"
	}
	return e.lost.Error() + "; CMD had already ended"
}

func (e *stoppedError) Unwrap() error { return e.lost }

// lateError says that CMD was stopped, and ended, before trust did: nobody else had
// been granted the lock, and a renewal may even have succeeded since.
type lateError struct {
	keys string
	why  string // the last renewal failed; "" if it did not
}

func (e *lateError) Error() string {
	if e.why == "" {
		return fmt.Sprintf("%s was not renewed before trust was about to end; CMD was stopped", e.keys)
	}
	return fmt.Sprintf("%s could not be renewed before trust was about to end; CMD was stopped: %s", e.keys, e.why)
}

// Is makes it match leasehold.ErrLost, as CMD was stopped.
func (e *lateError) Is(target error) bool { return target == leasehold.ErrLost }
