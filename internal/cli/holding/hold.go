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

// Hold is one lock, one permit, or the locks of several keys, acquired by a Seeker.
type Hold struct {
	leased   // the *leasehold.Lock or, for several keys, the *leasehold.Group
	seeker   *Seeker
	renewals *renewals

	name  string            // KEY as the user named it; the key of a permit is KEY/0, KEY/1 and so on
	locks []*leasehold.Lock // the locks, at least one, sorted by key

	running atomic.Bool // true while CMD runs
}

// leased contains the methods that a Lock and a Group have in common.
type leased interface {
	Context() context.Context // returns a context that is cancelled as soon as one of the locks is lost
	Err() error               // returns the error of the lock that was lost first; nil if none was lost
	Release(context.Context, ...leasehold.ReleaseOption) error
}

func (h *Hold) first() *leasehold.Lock { return h.locks[0] }

// TrustedUntil returns the time until which all of the locks are trusted.
func (h *Hold) TrustedUntil() time.Time {
	return slices.MinFunc(h.locks, func(a, b *leasehold.Lock) int { return a.TrustedUntil().Compare(b.TrustedUntil()) }).TrustedUntil()
}

// Running reports whether CMD was started and has not ended yet.
func (h *Hold) Running() bool { return h.running.Load() }

// Record returns the record of the first lock, as last written to the store.
func (h *Hold) Record() leasehold.Record { return h.first().Record() }

// String returns the names of the keys, such as "a and b".
func (h *Hold) String() string { return wording.List(h.keys()) }

// Are returns the names of the keys with a verb: "a is", or "a and b are".
func (h *Hold) Are() string { return wording.KeysAre(h.keys()) }

func (h *Hold) keys() []leasehold.Key {
	keys := make([]leasehold.Key, len(h.locks))
	for i, l := range h.locks {
		keys[i] = l.Key()
	}
	return keys
}

// Detach stops renewing the lock and returns its grant. The lock stays held after the
// command has ended.
func (h *Hold) Detach() (leasehold.Grant, error) { return h.first().Detach() }

// TakeBack releases the lock of the grant g, which Detach has returned. The caller calls it
// if g could not be written to its file. TakeBack takes at most ReleaseLimit, and signals
// do not interrupt it.
func (h *Hold) TakeBack(ctx context.Context, g leasehold.Grant) error {
	ctx, cancel := context.WithTimeout(ctx, ReleaseLimit)
	defer cancel()
	lock, err := h.seeker.locks.Resume(ctx, g)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// Run runs CMD, waits until CMD has ended, and releases the hold. Its error contains the
// exit code for leasehold.
func (h *Hold) Run(j process.Job) (process.Ended, error) {
	outer := h.outerValue()
	cmd := *j.Cmd // copied, because elect runs the same command in each term
	cmd.Env = h.environ(outer)
	j.Cmd = &cmd
	if h.first().Token() != 0 { // without a token, the value of LEASEHOLD_HELD would not be unique to this run
		j.Held = heldVariable + "=" + outerBegins(outer)
	}
	if seat := h.seeker.seat; seat != nil {
		resign := make(chan struct{})
		_ = seat.OnStepDown(h.first(), func() { close(resign) }) // cannot fail, because this election acquired the lock
		j.Resign = resign
	}
	// After a hand-over, a lock may be trusted for less time than CMD has to stop, so CMD would be
	// stopped immediately, or for so little of --lease that a probe of elect calls renewals overdue.
	// Renew it first. If that fails, the trust is over, and CMD does not start.
	for _, l := range h.locks {
		if durations.Times(time.Until(l.TrustedUntil())/9, 5) <= max(j.Grace, h.seeker.wanted.Lease/5) { // 5/9: as the limit of --grace
			_ = l.Renew(l.Context())
		}
	}
	h.running.Store(true)
	ended, err := process.Run(j, h, h.renewals.renewed, h.seeker.Signals, h.say())
	h.running.Store(false)
	if err != nil {
		_ = h.free(context.Background(), ReleaseLimit, false) // if the release fails, the key becomes free when the lease expires
		return ended, err
	}
	return ended, h.finish(ended)
}

func (h *Hold) say() *say.Messages { return h.seeker.user.Say }

// Event returns an event of the given kind, with the key and token of the first lock.
func (h *Hold) Event(kind string) say.Event {
	return say.NewEvent(kind, h.seeker.user.Now()).Of(h.first().Key(), h.first().Token())
}

// finish releases the hold after CMD has ended. It returns an error with the exit code for
// leasehold.
func (h *Hold) finish(ended process.Ended) error {
	e := h.Event(say.Exited)
	e.ExitCode = &ended.Code
	h.say().Event(e)
	lost, why := h.Err(), h.renewals.why()
	done := ended.Code == 0 && !ended.Stopped && lost == nil && h.seeker.wanted.Once != nil
	if done && ended.Cut {
		// A signal from the user, or the end of the parent process, came while CMD still ran. Many
		// programs then exit with 0 although their work is not done. So the work does not count as
		// done, and the next run repeats it.
		h.say().Always("%s: a signal came before the work had ended, so it does not count as done, and is done again", h)
		done = false
	}
	expires := h.seeker.user.Now().Add(h.seeker.wanted.Lease).Local().Format(time.DateTime)
	released := h.release(ended, lost, done)
	switch {
	case lost == nil && errors.Is(released, leasehold.ErrLost):
		lost = released
	case lost == nil && released != nil && done:
		return failure.Exit(failure.CodeLost, fmt.Errorf("%s: the mark that this is done may not be stored, so the work may be repeated when the lease expires, by %s: %s",
			h, expires, failure.Text(released, h.seeker.store.Where())))
	case lost == nil && released != nil:
		h.say().Note("%s could not be released, and will be free when the lease expires, by %s: %s",
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

// late returns the error for a CMD that leasehold stopped because the lock was not renewed in time.
// CMD exited while the lock was still trusted, so no other client can have acquired the lock. But
// the error is ErrLost, because leasehold stopped CMD as after a loss. The parameter "why" is the
// last renewal's error, or "" if it succeeded.
func late(keys, why string) error {
	if why == "" {
		return failure.Like(leasehold.ErrLost, fmt.Sprintf("%s was not renewed before trust was about to end; CMD was stopped", keys))
	}
	return failure.Like(leasehold.ErrLost, fmt.Sprintf("%s could not be renewed before trust was about to end; CMD was stopped: %s", keys, why))
}

// Limits of the time that leasehold waits for a release. After that time, leasehold exits,
// and the key becomes free when its lease expires.
const (
	// ReleaseLimit is how long leasehold tries to release the lock if a signal has arrived
	// or leasehold has stopped CMD. It also limits TakeBack, and how long "leasehold renew"
	// continues after a signal.
	ReleaseLimit = 5 * time.Second

	// lostReleaseLimit is the limit for a lock that was lost. Releasing a lost lock is not
	// important: at most, the key becomes free a little earlier.
	lostReleaseLimit = time.Second

	// keyReleaseLimit is the limit for a key that is still held. Without the release, no other
	// client could acquire the key until the lease expires. So leasehold tries to release the key
	// for up to this long, although CMD has already ended.
	keyReleaseLimit = 30 * time.Second

	// releaseUnsaid is how long a release may take before leasehold prints that it is
	// waiting.
	releaseUnsaid = time.Second
)

// releaseLimit returns how long leasehold waits for the release after CMD has ended. If "done" is
// true, the limit is the length of the lease. After that, marking the work as done is useless,
// because another client may already have started the work.
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

// release releases the hold after CMD has ended, and prints a message if the release takes
// long. If a signal arrives, release waits only until ReleaseLimit has passed since the
// release began. If done is true, the release also marks the work as done.
func (h *Hold) release(ended process.Ended, lost error, done bool) error {
	limit := h.releaseLimit(ended, lost, done)
	tell := func() { h.say().Text("CMD has ended: trying to release %s, for up to %s", h, wording.Duration(limit)) }
	if done {
		tell = func() {
			h.say().Text("CMD has ended: trying to store that %s is done, for up to %s", h, wording.Duration(limit))
		}
	}
	if ended.Stopped && lost == nil { // CMD was stopped because renewals failed, so the release may fail too: print the message immediately
		tell()
	} else if limit > lostReleaseLimit {
		defer time.AfterFunc(releaseUnsaid, tell).Stop()
	}
	signaled, unbind := h.seeker.Signals.Bind(context.Background())
	defer unbind()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	began := time.Now()
	defer context.AfterFunc(signaled, func() {
		time.AfterFunc(durations.Less(ReleaseLimit, time.Since(began)), func() { cancel(context.Cause(signaled)) })
	})()
	return h.free(ctx, limit, done)
}

// free releases the locks. It tries until it succeeds, ctx is cancelled, or limit has passed. If
// done is true, it also marks the work as done, and ignores limit. If ctx is then cancelled, free
// returns, but the client continues until the lease expires or the client is closed.
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

// renewals tracks the renewals of the locks under which CMD runs. It prints one message
// when renewals of a lock begin to fail, and one when they succeed again.
type renewals struct {
	say     *say.Messages
	where   string        // name of the store, for messages
	renewed chan struct{} // receives a value after each successful renewal

	mu     sync.Mutex
	failed map[leasehold.Key]failing // keys whose last renewal failed
}

// failing contains the errors of a key whose last renewal failed.
type failing struct {
	last   error // error of the last renewal
	answer error // last error that was not a timeout; nil if all were timeouts
}

func newRenewals(say *say.Messages, where string) *renewals {
	return &renewals{say: say, where: where, renewed: make(chan struct{}, 1), failed: map[leasehold.Key]failing{}}
}

// event receives every event of the locks, and handles the events about renewals.
func (r *renewals) event(e leasehold.Event) {
	switch e.Kind {
	case leasehold.EventRenewed:
		if r.fails(e.Key, nil) {
			r.say.Text("renewed %s", e.Key.String())
		}
		select {
		case r.renewed <- struct{}{}:
		default:
		}
	case leasehold.EventRenewError:
		if !r.fails(e.Key, e.Err) {
			r.say.Text("%s could not be renewed, trust ends in %s: still trying: %s",
				e.Key.String(), wording.Age(e.Remaining), failure.Text(e.Err, r.where))
		}
	}
}

// fails is called after each renewal of key, and records the result. The parameter "now" is the
// error of this renewal, or nil. fails returns true if the previous renewal of key failed.
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

// why returns the error text of a key whose last renewal failed, or "" if there is no such key. A
// timeout says little about the cause. The text therefore adds the most recent error that was not
// a timeout, if there is one.
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
