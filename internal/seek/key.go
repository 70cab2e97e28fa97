package seek

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// TryFor is how long a call with NoWait repeats requests that have no answer.
const TryFor = 10 * time.Second

// waiter is one key that a task wants: what is known of its record, and what was sent
// to be granted it.
type waiter struct {
	*task
	c      *Client
	want   *Want
	manual bool // once the call has returned nothing is sent in the background
	record *plainRecord

	place   *place        // in the local queue; nil if it needs no turn, or has waited for it
	ready   bool          // it has the turn of its local queue
	from    time.Duration // monotonic: until then other processes go first
	missing bool          // it has no record, as it must
	dropped error         // why the key cannot be acquired; nil if it may be

	answered bool // DynamoDB has answered a request for the key

	tried   attempts.Sequence[Attempt]
	unclear bool          // the last attempt has had no answer
	failing step          // the step that failed last, and has not succeeded since
	retryAt time.Duration // monotonic: until then nothing is repeated
	pauses  attempts.Pauses

	view    decide.View
	asked   decide.Instant   // when the request was sent whose reply is observed
	took    time.Duration    // from there to the reply, of the last read
	seen    *protocol.Record // the record as last shown, if held by another
	met     []string         // the versions of the holders that were seen first; nil before any was
	silent  bool             // those in the way look dead
	session Session          // the session to be granted under; nil for none

	holder  atomic.Pointer[protocol.Record] // seen, for the caller
	lastErr atomic.Pointer[error]           // why the last request failed, for the caller; nil if it did not
}

// waiter returns the waiter for one key of a task, whose call began then. It knows nothing
// of the key yet.
func (t *task) waiter(c *Client, want *Want, began decide.Instant) *waiter {
	w := &waiter{
		task: t, c: c, want: want, manual: want.Manual,
		view:   decide.View{PollMin: c.PollMin, PollMax: c.PollMax},
		pauses: c.Pauses(),
	}
	since := c.Wall().Add(-durations.Less(c.Now().Mono, began.Mono))
	w.record = &plainRecord{waiter: w, began: began, since: since, place: -1}
	return w
}

// next returns what to do next, and the pause before it; u is uniform in [0,1). After a
// pause look at the clock again: a timer that has fired proves nothing.
func (w *waiter) next(u float64) (decide.Move, time.Duration) {
	if wait := w.pausing(); wait > 0 {
		return decide.Take, wait
	}
	return w.move(u)
}

// move is decide.Next, but takes nothing over from the client's own locks.
func (w *waiter) move(u float64) (decide.Move, time.Duration) {
	view, now := w.view, w.c.Now().Mono
	if w.failing == looking { // nobody takes a key over later because it cannot read
		view.Looked = now
	}
	move, wait := decide.Next(view, now, u)
	if move != decide.TakeOver {
		return move, wait
	}
	view.Dead = w.record.dead()
	return decide.Next(view, now, u)
}

// isOwnLock reports whether a holder that a record shows is a lock of this client.
func (w *waiter) isOwnLock(r protocol.Record) bool { return w.c.keeper.Holds(w.want.Key, r.Grant) }

// looksDead reports whether the holder of r looks dead. A holder whose version is not among
// those seen first is live, whatever its times say: it has renewed, or is new.
func (w *waiter) looksDead(r protocol.Record) bool {
	return slices.Contains(w.met, r.Version) && w.c.Observer.LooksDead(r, w.c.Wall())
}

// noteSilent notes whether those in the way look dead.
func (w *waiter) noteSilent(silent bool) {
	w.silent = silent
	if w.isWatched() {
		w.watched = max(w.watched, w.view.Dead)
	}
}

// isWatched reports whether the key is waited for although the call has NoWait.
func (w *waiter) isWatched() bool {
	return w.want.ObservesDead() && w.dropped == nil && w.seen != nil && w.silent
}

// pausing returns for how long nothing is sent for the key.
func (w *waiter) pausing() time.Duration {
	if w.from == 0 && w.retryAt == 0 { // neither is set: no clock need be read
		return 0
	}
	return durations.Less(max(w.from, w.retryAt), w.c.Now().Mono)
}

// isDead reports whether the holder is dead, so that a grant takes the key over.
func (w *waiter) isDead() bool {
	move, _ := w.move(0)
	return move == decide.TakeOver
}

// step is a kind of request that a waiter sends.
type step int

// Values of step.
const (
	nothing    step = iota
	looking         // reads the record
	refreshing      // finds out what the record does not show
	granting        // follows both
)

// succeeded notes that a request has not failed. While the session of a holder cannot
// be read, say, an answer that shows the record shortens no pauses.
func (w *waiter) succeeded(s step) {
	if s == w.failing || s == granting {
		w.failing = nothing
		w.pauses.Reset()
	}
}

// refresh finds out what the record does not show, unless nothing is to be sent now.
func (w *waiter) refresh() error {
	if w.pausing() > 0 {
		return nil
	}
	err := w.record.refresh()
	if err == nil {
		w.succeeded(refreshing)
	}
	return err
}

// failed notes the failure of a request, and when it is repeated, or its success if err is
// nil. A returned error ends the wait.
func (w *waiter) failed(s step, err error) error {
	f := attempts.FailureOf(err)
	if f == nil {
		return err
	}
	if err := w.repeat(s, f); err != nil {
		return err
	}
	if f.Cause == decide.Busy {
		w.c.ReportThrottled(w.ctx, w.want.Key, 0, f.Err)
	}
	return nil
}

// repeat decides when a request that has failed is repeated. An error ends the waiting.
func (w *waiter) repeat(s step, f *attempts.Failure) error {
	f = f.After(w.isAnswered())
	w.retryAt = durations.Sum(w.c.Now().Mono, w.c.Requests.NextPause(&w.pauses))
	if f.Cause == decide.ConditionFailed {
		return nil // an answer: the key was freed meanwhile
	}
	w.report(f)
	if f.Cause == decide.Refused {
		return w.c.Errors.Failed("acquire", w.want.Key, f.Err)
	}
	w.failing = s
	return nil
}

// isAnswered reports whether DynamoDB has answered a request for the key: in this call, in
// one before that it goes on from, or in one that was before it in the local queue.
func (w *waiter) isAnswered() bool {
	return w.answered || core.IsGoingOn(w.values) || w.c.Local.IsKnown(w.want.Key)
}

// willRepeat reports whether a request is to be repeated.
func (w *waiter) willRepeat() bool { return w.c.Now().Mono < w.retryAt }

// report keeps why the last request failed, and reports it now and then.
func (w *waiter) report(f *attempts.Failure) {
	w.lastErr.Store(&f.Err)
	w.trouble.Report(w.ctx, w.c, w.want.Key, f)
}

// timeoutError is the error of a call with NoWait that has had no answer since it began.
func (w *waiter) timeoutError(began decide.Instant) error {
	err := fmt.Errorf("gave up after %v", w.c.since(began))
	if last := w.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return w.c.Errors.Failed("acquire", w.want.Key, err)
}

// look reads the record once.
func (w *waiter) look() error {
	w.requests++
	w.asked = w.c.Now()
	item, err := w.c.Requests.Read(w.ctx, w.want.Key)
	if err != nil {
		return err
	}
	w.took = w.c.Now().Mono - w.asked.Mono
	return w.shown(item)
}

// shown notes what a look has shown.
func (w *waiter) shown(item protocol.Item) error {
	err := w.observe(item)
	if err == nil {
		w.succeeded(looking)
	}
	return err
}

// observe notes what a reply has shown.
func (w *waiter) observe(item protocol.Item) error {
	w.trouble.Passed()
	w.answered, w.view.Looked = true, w.c.Now().Mono
	w.lastErr.Store(nil)
	if err := w.record.observe(item); err != nil || item == nil {
		return err
	}
	if err := w.c.Proto.Grantable(item); err != nil {
		return w.c.Errors.Unreadable(w.want.Key, item, err)
	}
	return nil
}

// take sends one grant. A holding ends the waiting. Without one and without an error
// somebody else has the key.
func (w *waiter) take() (Holding, error) {
	if a, ok := w.record.handed(); ok {
		return w.newHolding(a, *w.seen), nil
	}
	takeOver := w.isDead()
	if err := w.record.prepare(takeOver); errors.Is(err, errSessionLives) {
		w.slowDown()
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	w.requests++
	w.asked = w.c.Now()
	r := w.tried.Try(w.values, w.c.Requests, attempts.Operation[Attempt]{
		Key:    w.want.Key,
		Next:   func() (Attempt, *protocol.Write) { return w.record.grant(takeOver) },
		Within: w.want.Within(w.session),
		Shows:  w.record.shows,
	})
	w.leaveOldest()
	w.unclear = false
	switch r.Outcome {
	case attempts.Applied:
		record, err := w.c.Decode(w.want.Key, r.Item)
		if err != nil {
			w.tried.Add(r.Attempt) // it was applied, but what a grant leaves in place is damaged
			return nil, err
		}
		return w.newHolding(r.Attempt, record), nil
	case attempts.Rejected:
		if err := w.observeRejection(r.Item); err != nil {
			return nil, err
		}
		w.record.rejected(r)
		if w.view.Free {
			return nil, r.Failure() // it is free by now: try again
		}
		w.succeeded(granting)
		if takeOver {
			w.slowDown()
		}
		return nil, nil
	}
	w.unclear = len(w.tried.Versions()) > 0
	return nil, r.Failure()
}

// slowDown follows a takeover that came too late: the holder has renewed. One that renews
// a lease of next to nothing is not asked for more often than PollMin.
func (w *waiter) slowDown() {
	if least := durations.Sum(w.c.Now().Mono, w.c.PollMin); w.view.Dead < least {
		w.from = max(w.from, least)
	}
}

// observeRejection observes the record that made a grant of ours fail.
func (w *waiter) observeRejection(item protocol.Item) error {
	if item == nil && w.want.IfExists {
		w.missing = true
		return fmt.Errorf("%w: IfExists acquires only a record that is there", w.c.Errors.Missing(w.want.Key))
	}
	return w.observe(item)
}

// isOurs reports whether a version is an attempt of ours that nobody holds.
func (w *waiter) isOurs(version string) bool {
	return w.c.IsUnsettled(w.want.Key, version) || slices.Contains(w.tried.Versions(), version)
}

// leaveOldest leaves the oldest attempts to the client if there are too many to be
// named in every condition. If one of them turns out to hold the key, it is taken
// over at once.
func (w *waiter) leaveOldest() {
	if old := w.tried.Keep(attempts.MostUnanswered); len(old) > 0 {
		w.c.leaveUnsettled(w.want.Key, attempts.Versions(old))
	}
}

// newHolding makes a holding of a grant.
func (w *waiter) newHolding(a Attempt, r protocol.Record) Holding {
	w.tried.Drop(a.Version)
	w.record.holds(a.Version)
	w.c.Observer.Records.Forget(w.want.Key)
	return w.want.Hold(w.values, Grant{Attempt: a, Record: r})
}

// leaveTried leaves to the client the attempts without an answer: one may still be
// applied, once the key is free again. It returns those to be granted the key.
func (w *waiter) leaveTried() []Attempt {
	tried := w.tried.Unanswered()
	w.c.leaveUnsettled(w.want.Key, attempts.Versions(append(slices.Clip(tried), w.record.entries...)))
	return tried
}

// leave gives up the key: what attempts without an answer may have taken is freed, and
// the next in the local queue gets the turn. The request for that is awaited by undone.
func (w *waiter) leave(undone *sync.WaitGroup) {
	tried := w.leaveTried()
	if w.ready {
		w.ready = false
		w.c.Local.PassAfter(w.want.Key, nil, durations.Less(w.from, w.c.Now().Mono))
	}
	undone.Add(1)
	w.c.Detach(func() {
		defer undone.Done()
		w.c.freeUnsettled(w.values, w.want, tried)
		w.record.giveUp()
	})
}
