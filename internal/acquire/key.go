package acquire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// TryFor is how long a call with NoWait repeats its requests while DynamoDB does not
// answer.
const TryFor = 10 * time.Second

// waiter stands for one key that a call is to acquire. It contains the known state of the key's
// record, and the attempts to acquire the key.
type waiter struct {
	*call
	want *Want

	local   *Place        // the call's entry in the local queue of the key; nil unless First waits for several keys: other calls wait in awaitTurn
	ready   bool          // the call is first in the local queue of the key
	from    time.Duration // monotonic time until which the waiter pauses, so that other processes can acquire the key first
	missing bool          // the key has no record, and Want.IfExists forbids a grant without one
	dropped error         // reason why the call has stopped waiting for this key; nil if it waits

	tried   attempts.Sequence[GrantAttempt]
	unclear bool          // the last grant had no answer, and the record has not shown yet whether it was applied
	failing step          // kind of the last failed request; the value nothing if a request of that kind, or a grant, has had an answer since
	retryAt time.Duration // monotonic time from which a failed request may be repeated
	pauses  attempts.Pauses

	view        decide.View
	lookAt      time.Duration    // monotonic time from which the record is to be read again; set only if the call waits for several keys
	asked       decide.Instant   // send time of the request whose reply the waiter observed last
	seen        *protocol.Record // the record as it was last read; nil if the key was free
	met         []string         // the version that the first holder had when the waiter first saw this holder; nil until the waiter has seen a holder
	appearsDead bool             // the holder appears dead
	queue       inQueue          // state of the waiter in the queue of the record

	holder  atomic.Pointer[protocol.Record] // last holder seen; also read by the goroutine that called First or All
	lastErr atomic.Pointer[error]           // error of the last request; nil if it succeeded; the error of a refresh stays until one succeeds; also read by the goroutine that called First or All
}

// newWaiter returns the waiter for one key of a call. The waiter does not know the state of
// the record yet.
func (w *call) newWaiter(want *Want) *waiter {
	c := w.c
	return &waiter{
		call: w, want: want,
		view:   decide.View{PollMin: c.PollMin, PollMax: c.PollMax},
		pauses: c.Pauses(),
		queue:  inQueue{since: c.Wall().Add(-durations.Less(c.Now().Mono, w.began.Mono)), place: -1},
	}
}

// begin records that the call is first in the local queue. It then pauses, so that other processes
// can acquire the key first. If the caller stops waiting, the next call in that queue pauses for
// the rest: see leave.
func (w *waiter) begin(given turn) {
	w.ready = true
	until := durations.Sum(w.c.Now().Mono, given.delay)
	if !attempts.Wait(w.ctx, given.delay) {
		w.from = until
	}
}

// move returns the next step of the waiter and the pause before it (see decide.Next). It never
// returns a takeover of this client's own lock. After the pause, the caller must call move again,
// because the timer uses another clock than the client, and may fire too early.
func (w *waiter) move(u float64) (decide.Move, time.Duration) {
	view, now := w.view, w.c.Now().Mono
	// decide.Next wants a recent read before a takeover. While reads fail, pretend that the record
	// was read just now, so that the failed reads do not delay the takeover.
	if w.failing == looking {
		view.Looked = now
	}
	move, wait := decide.Next(view, now, u)
	if move != decide.TakeOver || !w.isOwnLock() {
		return move, wait
	}
	view.Dead = math.MaxInt64
	return decide.Next(view, now, u)
}

// isOwnLock reports whether the record shows a lock that this client still holds. With
// HoldThroughOutage of layout.AWSLabs, the client may hold a lock through an outage, even
// if its record has not changed for a whole lease.
func (w *waiter) isOwnLock() bool { return w.c.keeper.Holds(w.want.Key, w.seen.Grant) }

// pausing returns the time until the waiter may send the next request. Zero means that it
// may send the request now.
func (w *waiter) pausing() time.Duration {
	if w.from == 0 && w.retryAt == 0 { // return without reading the clock
		return 0
	}
	return durations.Less(max(w.from, w.retryAt), w.c.Now().Mono)
}

// shown updates the waiter from item, the record that a read has returned.
func (w *waiter) shown(item protocol.Item) error {
	err := w.observe(item)
	if err == nil {
		w.succeeded(looking)
	}
	return err
}

// observe records the state of the record from any reply that contains it. A returned error
// ends the wait for this key.
func (w *waiter) observe(item protocol.Item) error {
	wall, now := w.c.Wall(), w.c.Now()
	w.trouble.Passed()
	if w.failing != refreshing {
		w.lastErr.Store(nil)
	}
	w.view.Known, w.view.Free, w.view.Ours, w.view.Looked = true, true, false, now.Mono
	shown, v, err := w.c.Observer.Observe(w.want.Key, item, now)
	if err != nil {
		return err
	}
	var held *protocol.Record // nil if the key is free
	if !shown.Released {
		held = &shown
	}
	w.noteQueue(shown)
	if w.want.Once.IsDone(shown.Done) {
		// The work of this call is marked as done, so DynamoDB rejects its grants. A hand-over
		// ignores the mark, so check it here. Set w.seen although the wait ends: leaveQueue frees a
		// key that was handed to this waiter.
		w.seen = held
		return w.c.Errors.Done(w.want.Key, *shown.Done)
	}
	if held == nil {
		w.seen = nil
	} else {
		w.noteHolder(held, v, now, wall)
	}
	if item == nil {
		return nil
	}
	if err := w.c.Proto.Grantable(item); err != nil {
		return w.c.Errors.Unreadable(w.want.Key, item, err)
	}
	return nil
}

// noteHolder records the holder that a reply has shown. The parameters now and wall are the clock
// readings when the reply arrived. The parameter v contains the time when the client first saw the
// record's version.
func (w *waiter) noteHolder(held *protocol.Record, v liveness.Version, now decide.Instant, wall time.Time) {
	w.view.Free, w.view.Ours = false, w.isOurs(*held)
	w.view.Grant, w.view.Dead = v.Granted, w.c.Observer.DeadAt(*held, v, now, wall)
	isNew := liveness.IsNewGrant(w.seen, *held)
	if !w.view.Ours && (w.seen == nil || w.seen.Version != held.Version) {
		w.unclear = false // another client has written the record since, so a grant of this waiter is rejected while that client holds the key
	}
	w.seen = held
	if w.holdersSession() == nil {
		w.noteAppearsDead(*held)
	}
	if w.view.Ours {
		w.holder.Store(nil) // no caller holds the key, so the error of the call must not name a holder
	} else {
		w.holder.Store(held)
		if isNew {
			w.c.Local.ReportHolder(w.want.Key, held)
		}
	}
	if isNew {
		w.queue.told = -1
	}
}

// isOurs reports whether the grant in r comes from this client, but no caller holds the key by this
// grant. This waiter or an earlier call has sent the grant, or has sent the queue entry from which
// a release made the grant.
func (w *waiter) isOurs(r protocol.Record) bool {
	_, granted := w.tried.Find(r.Version)
	_, handed := attempts.Find(w.queue.entries, r.Grant)
	return granted || handed || w.c.IsInDoubt(w.want.Key, r)
}

// refresh reads the row of the holder's session if necessary, and joins the queue of the
// record if there is room. It does nothing while the waiter pauses.
func (w *waiter) refresh() error {
	if w.pausing() > 0 {
		return nil
	}
	defer w.tell()
	if err := w.recall(); err != nil {
		return err
	}
	err := w.lookAtSession()
	if err == nil || attempts.FailureOf(err) != nil && w.ctx.Err() == nil {
		err = cmp.Or(err, w.join()) // join even if the session's row cannot be read: the key may be released nevertheless
	}
	if err == nil {
		w.succeeded(refreshing)
	}
	return err
}

// tell reports the holder and the waiter's position in the queue if either has changed. It
// reports both in one event.
func (w *waiter) tell() {
	q := &w.queue
	if w.seen == nil || w.view.Ours || q.told == q.place+1 {
		return
	}
	q.told = q.place + 1
	w.c.Report(w.ctx, core.Event{Kind: core.Waiting, Key: w.want.Key, Holder: w.seen, Position: q.told})
}

// holdersSession returns the session of the holder. It returns nil if no client holds the key, or
// if the holder has no session. It also returns nil if isOurs returns true for the record.
func (w *waiter) holdersSession() *liveness.Session {
	if w.seen == nil || w.view.Ours {
		return nil
	}
	return w.c.Observer.SessionOf(*w.seen)
}

// lookAtSession reads the row of the holder's session if necessary, and records when the
// session will be dead if it is not renewed. As long as the session is alive, all its locks
// are alive, even if their own records are old.
func (w *waiter) lookAtSession() error {
	session := w.holdersSession()
	if session == nil {
		return nil
	}
	fresh := w.c.PollMax
	if w.want.NoWait { // then the row must have been read after the record: one read serves all keys that were read together
		fresh = durations.Less(w.c.Now().Mono, w.asked.Mono)
	}
	row, deadAt, err := session.Look(w.ctx, fresh, &w.requests)
	if err == nil {
		w.view.Dead = deadAt
		w.noteAppearsDead(row)
	}
	return err
}

// noteAppearsDead notes whether the holder appears dead by the timestamps in r, which is the
// holder's record or session row. Only the first version that the waiter saw can appear dead: a
// client that writes a later one is evidently alive. This client's own lock never appears dead.
func (w *waiter) noteAppearsDead(r protocol.Record) {
	if w.met == nil {
		w.met = []string{r.Version}
	}
	w.appearsDead = slices.Contains(w.met, r.Version) && w.c.Observer.LooksDead(r, w.c.Wall()) && !w.isOwnLock()
	if w.isWatched() {
		w.watched = max(w.watched, w.view.Dead)
	}
}

// isWatched reports whether a call with NoWait still waits for this key because the key's holder
// appears dead. Such a wait lasts until the holder renews or the call can take the key over.
func (w *waiter) isWatched() bool {
	return w.want.NoWait && !w.want.EvenIfDead && w.dropped == nil && w.seen != nil && w.appearsDead
}

// step is a kind of request that a waiter sends.
type step int

// Values of step. Each comment says what a request of that kind does.
const (
	nothing    step = iota
	looking         // reads the record
	refreshing      // reads the row of the holder's session, and joins the queue
	granting        // sends a grant
)

// succeeded records that a request of kind s has succeeded. If s is granting, or the kind that
// failed last, the retry pauses become short again. Any other success does not shorten them: reads
// of the record may succeed while reads of the session fail.
func (w *waiter) succeeded(s step) {
	if s == w.failing || s == granting {
		w.failing = nothing
		w.lastErr.Store(nil)
		w.pauses.Reset()
	}
}

// failed handles err, the error of a request of kind s, and notes when to repeat the request. It
// does nothing if err is nil. A call for several keys drops a key whose record is missing or
// damaged. A returned error ends the wait of the call.
func (w *waiter) failed(s step, err error) error {
	f := attempts.FailureOf(err)
	switch {
	case err != nil && f == nil && len(w.waiters) > 1:
		return w.drop(err)
	case f == nil:
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

// drop ends the wait for this key, whose record is missing or damaged. It undoes the key's writes
// at once, because the wait for other keys may be long. If no key is left, it returns the errors of
// all keys. Otherwise it returns nil.
func (w *waiter) drop(err error) error {
	w.dropped = err
	if !w.missing {
		w.damaged.Store(&err)
		w.c.Report(w.ctx, core.Event{Kind: core.WaitError, Key: w.want.Key, Err: err})
	}
	w.leave()
	var errs []error
	for _, of := range w.waiters {
		if of.dropped == nil {
			return nil
		}
		errs = append(errs, of.dropped)
	}
	return errors.Join(errs...)
}

// repeat records when the waiter is to repeat a failed request of kind s. A returned error
// ends the wait.
func (w *waiter) repeat(s step, f *attempts.Failure) error {
	f = f.After(w.isAnswered())
	w.retryAt = durations.Sum(w.c.Now().Mono, w.c.Requests.NextPause(&w.pauses))
	if f.Cause == decide.ConditionFailed {
		w.failing = nothing // the failed condition is an answer and no failure: the key was freed meanwhile
		return nil
	}
	w.lastErr.Store(&f.Err)
	w.trouble.Report(w.ctx, w.c, w.want.Key, f)
	if f.Cause == decide.Refused {
		return w.c.Errors.Failed("acquire", w.want.Key, f.Err)
	}
	w.failing = s
	return nil
}

// isAnswered reports whether DynamoDB has answered a request for the key. The request may belong to
// this call, to an earlier call that this call continues (core.GoesOn), or to a call ahead in the
// local queue.
func (w *waiter) isAnswered() bool {
	return w.view.Known || core.IsGoingOn(w.values, w.want.Key) || w.c.Local.IsKnown(w.want.Key)
}

// willRepeat reports whether the waiter pauses before it repeats a failed request.
func (w *waiter) willRepeat() bool { return w.c.Now().Mono < w.retryAt }

// timeoutError returns the error of a call with NoWait that DynamoDB has not answered in
// time.
func (w *waiter) timeoutError() error {
	err := fmt.Errorf("gave up after %v", w.c.since(w.began))
	if last := w.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return w.c.Errors.Failed("acquire", w.want.Key, w.withDamaged(err))
}
