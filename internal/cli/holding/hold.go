package holding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// Hold is a held lock or permit, or the held locks of several keys.
type Hold struct {
	leased   // the lock, or the group of several locks
	seeker   *Seeker
	renewals *renewals

	name  string            // the key that the user named, also for a permit
	locks []*leasehold.Lock // the held locks, at least one, in the order of their keys

	running atomic.Bool // true while CMD runs
}

// leased has the common methods of a lock and a group of locks.
type leased interface {
	Context() context.Context // ends when the first of the locks is lost
	Err() error               // returns the error of the first lost lock; nil if none is lost
	Release(context.Context, ...leasehold.ReleaseOption) error
}

func (h *Hold) first() *leasehold.Lock { return h.locks[0] }

// TrustedUntil returns the earliest time at which trust in one of the locks ends.
func (h *Hold) TrustedUntil() time.Time {
	return slices.MinFunc(h.locks, func(a, b *leasehold.Lock) int { return a.TrustedUntil().Compare(b.TrustedUntil()) }).TrustedUntil()
}

// Running reports whether CMD has begun, and has not ended.
func (h *Hold) Running() bool { return h.running.Load() }

// Record returns the stored record of the first lock.
func (h *Hold) Record() leasehold.Record { return h.first().Record() }

// String names the keys.
func (h *Hold) String() string { return wording.List(h.keys()) }

// Are names the keys with their verb: "a is", or "a and b are".
func (h *Hold) Are() string { return wording.KeysAre(h.keys()) }

func (h *Hold) keys() []leasehold.Key {
	keys := make([]leasehold.Key, len(h.locks))
	for i, l := range h.locks {
		keys[i] = l.Key()
	}
	return keys
}

// Detach ends the renewals and returns the grant, which stays held when the command ends.
func (h *Hold) Detach() (leasehold.Grant, error) { return h.first().Detach() }

// TakeBack releases a grant that Detach has made and that no other process has. A signal
// does not interrupt it: it takes at most ReleaseLimit.
func (h *Hold) TakeBack(ctx context.Context, g leasehold.Grant) error {
	ctx, cancel := context.WithTimeout(ctx, ReleaseLimit)
	defer cancel()
	lock, err := h.seeker.locks.Resume(ctx, g)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// Run runs CMD under the hold until CMD has ended, and releases the hold. Its error carries
// the exit code.
func (h *Hold) Run(j process.Job) (process.Ended, error) {
	outer := h.outerValue()
	cmd := *j.Cmd // a copy of the command, because elect runs the command again
	cmd.Env = h.environ(outer)
	j.Cmd = &cmd
	if h.first().Token() != 0 { // without a token, the value would not be unique to this run
		j.Held = heldVariable + "=" + outerBegins(outer)
	}
	if seat := h.seeker.seat; seat != nil {
		resign := make(chan struct{})
		_ = seat.OnStepDown(h.first(), func() { close(resign) }) // cannot fail, because the lock was acquired through this election
		j.Resign = resign
	}
	h.running.Store(true)
	ended, err := process.Run(j, h, h.renewals.renewed, h.seeker.signals, h.say())
	h.running.Store(false)
	if err != nil {
		_ = h.free(context.Background(), ReleaseLimit, false) // the error can be ignored: if the release fails, the key becomes free when the lease expires
		return ended, err
	}
	return ended, h.finish(ended)
}

func (h *Hold) say() *say.Messages { return h.seeker.user.Say }

// Event returns an event of the first lock.
func (h *Hold) Event(kind string) say.Event {
	return say.NewEvent(kind, h.seeker.user.Now()).Of(h.first().Key(), h.first().Token())
}

// finish releases the hold after CMD has ended, and returns the error with the exit code.
func (h *Hold) finish(ended process.Ended) error {
	e := h.Event(say.Exited)
	e.ExitCode = &ended.Code
	h.say().Event(e)
	lost, why := h.Err(), h.renewals.why()
	done := ended.Code == 0 && !ended.Stopped && lost == nil && h.seeker.wanted.Once != nil
	if done && ended.Cut {
		// Many programs exit with 0 when they are asked to end, even in the middle of their
		// work.
		h.say().Always("%s: a signal came before the work had ended, so it does not count as done, and is done again", h)
		done = false
	}
	expires := h.seeker.user.Now().Add(h.seeker.wanted.Lease).Local().Format(time.TimeOnly)
	released := h.release(ended, lost, done)
	switch {
	case lost == nil && errors.Is(released, leasehold.ErrLost):
		lost = released
	case lost == nil && released != nil && done:
		return failure.Exit(failure.CodeLost, fmt.Errorf("%s: the mark that this is done may not be stored, so the work may be repeated when the lease expires, by %s: %s",
			h, expires, failure.Text(released, h.seeker.store.Where())))
	case lost == nil && released != nil:
		h.say().Text("%s could not be released, and will be free when the lease expires, by %s: %s",
			h, expires, failure.Text(released, h.seeker.store.Where()))
	}
	switch {
	case ended.Stopped && lost == nil:
		return failure.Exit(failure.CodeLost, late(h.String(), why))
	case ended.Stopped:
		return failure.Exit(failure.CodeLost, failure.Like(lost, lost.Error()+"; CMD was stopped"))
	case lost != nil:
		return failure.Exit(failure.CodeLost, failure.Like(lost, lost.Error()+"; CMD had already ended"))
	case ended.Code != 0:
		return failure.Exit(ended.Code, nil)
	}
	return nil
}

// late returns the error for a CMD that was stopped, and that exited while the lock could
// still be trusted. No other client can have been granted the lock by then, and a later
// renewal may even have succeeded. It still counts as a loss, because CMD was stopped.
// why is the reason why the last renewal failed; empty if that renewal succeeded.
func late(keys, why string) error {
	if why == "" {
		return failure.Like(leasehold.ErrLost, fmt.Sprintf("%s was not renewed before trust was about to end; CMD was stopped", keys))
	}
	return failure.Like(leasehold.ErrLost, fmt.Sprintf("%s could not be renewed before trust was about to end; CMD was stopped: %s", keys, why))
}

// These limit how long this process waits for a release. If a release is not complete when
// the process ends, it is abandoned. Then the key becomes free when its lease expires.
const (
	// ReleaseLimit is how long a signal has to wait for the release after CMD has ended, or
	// for the outcome of a grant that is renewed or taken back.
	ReleaseLimit = 5 * time.Second

	// lostReleaseLimit applies to a lost lock. Its release can only make the key free
	// sooner.
	lostReleaseLimit = time.Second

	// keyReleaseLimit applies to a key that no other client could otherwise acquire before
	// the lease expires. The user waits up to this long for a command that has done its
	// work.
	keyReleaseLimit = 30 * time.Second

	// releaseUnsaid is how long a release may take before it is reported.
	releaseUnsaid = time.Second
)

// releaseLimit returns how long to wait for the release after CMD has ended. If the release
// stores that the work is done, the limit is the lease, as no other client can do the work
// during that time.
func (h *Hold) releaseLimit(ended process.Ended, lost error, done bool) time.Duration {
	lease := h.seeker.wanted.Lease
	switch {
	case lost != nil:
		return lostReleaseLimit
	case done:
		return lease
	case ended.Cut || ended.Stopped:
		return ReleaseLimit
	}
	return max(min(lease, keyReleaseLimit), ReleaseLimit)
}

// release releases the hold after CMD has ended. It reports a release that takes long. A
// signal ends the wait for the release, but not before ReleaseLimit has passed. If done is
// true, the record stores that the work is done.
func (h *Hold) release(ended process.Ended, lost error, done bool) error {
	limit := h.releaseLimit(ended, lost, done)
	tell := func() { h.say().Text("CMD has ended: trying to release %s, for up to %s", h, wording.Duration(limit)) }
	if done {
		tell = func() {
			h.say().Text("CMD has ended: trying to store that %s is done, for up to %s", h, wording.Duration(limit))
		}
	}
	if ended.Stopped && lost == nil { // reported at once: the lock could not be renewed, so its release may fail as well
		tell()
	} else if limit > lostReleaseLimit {
		defer time.AfterFunc(releaseUnsaid, tell).Stop()
	}
	signaled, unbind := h.seeker.signals.Bind(context.Background())
	defer unbind()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	began := time.Now()
	defer context.AfterFunc(signaled, func() {
		time.AfterFunc(durations.Less(ReleaseLimit, time.Since(began)), func() { cancel(context.Cause(signaled)) })
	})()
	return h.free(ctx, limit, done)
}

// free releases the locks. It waits until ctx ends or limit has passed. If done is true,
// the release stores a mark and does not end with ctx. Then ctx ends only the wait, and the
// client continues the release until the lease ends or the client is closed.
func (h *Hold) free(ctx context.Context, limit time.Duration, done bool) error {
	if done {
		freed := make(chan error, 1)
		go func() { freed <- h.Release(ctx, leasehold.MarkDone()) }()
		select {
		case err := <-freed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return h.Release(ctx)
}

// renewals follows the renewals of the locks that CMD runs under. It writes one report when
// the renewals of a lock begin to fail, and one when they succeed again.
type renewals struct {
	say     *say.Messages
	where   string        // name of the store in messages
	renewed chan struct{} // receives a value after each successful renewal

	mu     sync.Mutex
	failed map[leasehold.Key]failing // keys with a failed last renewal
}

// failing describes the failing renewals of a key.
type failing struct {
	last   error // error of the last renewal
	answer error // last error that was no timeout; nil if all were timeouts
}

func newRenewals(say *say.Messages, where string) *renewals {
	return &renewals{say: say, where: where, renewed: make(chan struct{}, 1), failed: map[leasehold.Key]failing{}}
}

// event is called for every event of the locks.
func (r *renewals) event(e leasehold.Event) {
	switch e.Kind {
	case leasehold.EventRenewed:
		if r.fails(e.Key, nil) {
			r.say.Text("renewed %s", wording.Key(e.Key))
		}
		select {
		case r.renewed <- struct{}{}:
		default:
		}
	case leasehold.EventRenewError:
		if !r.fails(e.Key, e.Err) {
			r.say.Text("%s could not be renewed, trust ends in %s: still trying: %s",
				wording.Key(e.Key), wording.Age(e.Remaining), failure.Text(e.Err, r.where))
		}
	}
}

// fails records the error of a key's last renewal, or nil if it succeeded. It reports
// whether the previous renewal had failed.
func (r *renewals) fails(key leasehold.Key, now error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, before := r.failed[key]
	if now == nil {
		delete(r.failed, key)
		return before
	}
	f.last = now
	if !failure.IsTimeout(now) {
		f.answer = now
	}
	r.failed[key] = f
	return before
}

// why returns the reason why the last renewal of one of the keys failed. It returns "" if
// no key has a failed last renewal. If renewals timed out after another error, the reason
// includes that error, because a timeout says less.
func (r *renewals) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.failed {
		why := failure.Text(f.last, r.where)
		if f.answer != nil && failure.IsTimeout(f.last) {
			why += "; before that: " + failure.Reason(f.answer)
		}
		return why
	}
	return ""
}
