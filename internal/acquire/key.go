package acquire

import (
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
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// TryFor is how long a call with NoWait repeats its requests if they get no answer.
const TryFor = 10 * time.Second

// waiter is one key that a call wants, with the known state of the key's record and the
// attempts to acquire the key.
type waiter struct {
	*call
	want   *Want
	manual bool // the lock is not renewed, and the client sends nothing in the background after the call has returned

	local   *place        // place in the local queue; nil if the waiter needs no turn, or waits for the turn elsewhere
	ready   bool          // whether the waiter's turn in the local queue has come
	from    time.Duration // monotonic time until which other processes go first
	missing bool          // the key has no record, but a grant needs one
	dropped error         // reason why the key cannot be acquired; nil if it can be acquired

	tried   attempts.Sequence[GrantAttempt]
	unclear bool          // the last attempt had no answer
	failing step          // kind of the last failed request, until a request of that kind, or a grant, is answered
	retryAt time.Duration // monotonic time until which no failed request is repeated
	pauses  attempts.Pauses

	view   decide.View
	lookAt time.Duration    // monotonic time from which the record is to be read again, if the call is for several keys
	asked  decide.Instant   // time when the request of the last observed reply was sent
	seen   *protocol.Record // the record as it was last read, if another client holds the key
	met    []string         // the first version that the waiter saw of its first holder; nil until it has seen a holder
	silent bool             // the holder appears dead
	queue  inQueue          // state of the waiter in the record's queue
	news   bool             // the holder has not been reported to the listener yet

	holder  atomic.Pointer[protocol.Record] // last holder seen; read by the caller
	lastErr atomic.Pointer[error]           // error of the last request; nil if it succeeded; read by the caller
}

// newWaiter returns the waiter for one key of a call. It has not read the record yet.
func (w *call) newWaiter(want *Want) *waiter {
	c := w.c
	return &waiter{
		call: w, want: want, manual: want.Manual,
		view:   decide.View{PollMin: c.PollMin, PollMax: c.PollMax},
		pauses: c.Pauses(),
		queue:  inQueue{since: c.Wall().Add(-durations.Less(c.Now().Mono, w.began.Mono)), place: -1},
	}
}

// move returns the result of decide.Next, except that it never returns a takeover of a lock
// of this client. u is uniform in [0,1). Call move again after the pause that it returns: the
// clock may show that it is still too early for the step.
func (w *waiter) move(u float64) (decide.Move, time.Duration) {
	view, now := w.view, w.c.Now().Mono
	if w.failing == looking { // while reads fail, pretends that the record was read now, as a failed read must not delay a takeover
		view.Looked = now
	}
	move, wait := decide.Next(view, now, u)
	if move != decide.TakeOver || !w.isOwnLock(*w.seen) {
		return move, wait
	}
	view.Dead = math.MaxInt64
	return decide.Next(view, now, u)
}

// isOwnLock reports whether r shows a lock of this client, which may be held through an
// outage.
func (w *waiter) isOwnLock(r protocol.Record) bool { return w.c.keeper.Holds(w.want.Key, r.Grant) }

// pausing returns the time until a request for the key may be sent again; zero means now.
func (w *waiter) pausing() time.Duration {
	if w.from == 0 && w.retryAt == 0 { // returns early, without reading the clock
		return 0
	}
	return durations.Less(max(w.from, w.retryAt), w.c.Now().Mono)
}

// shown records what a read has shown.
func (w *waiter) shown(item protocol.Item) error {
	err := w.observe(item)
	if err == nil {
		w.succeeded(looking)
	}
	return err
}

// observe records what a reply has shown of the record. An error ends the wait for this
// key.
func (w *waiter) observe(item protocol.Item) error {
	wall, now := w.c.Wall(), w.c.Now()
	w.trouble.Passed()
	w.lastErr.Store(nil)
	w.view.Known, w.view.Free, w.view.Ours, w.view.Looked = true, true, false, now.Mono
	held, v, err := w.c.Observer.Observe(w.want.Key, item, now)
	if err != nil {
		return err
	}
	w.noteQueue(item, held)
	if err := w.isDone(item); err != nil {
		w.seen = held // kept for leaveQueue, as the key may have been handed to this waiter
		return err
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

// noteHolder records the holder that a reply has shown. now and wall are the monotonic and
// the wall-clock time when the reply was read. v contains the time since which the holder's
// version has been known.
func (w *waiter) noteHolder(held *protocol.Record, v observed.Version, now decide.Instant, wall time.Time) {
	w.view.Free, w.view.Ours = false, w.isOurs(*held)
	w.view.Grant, w.view.Dead = v.Granted, w.c.Observer.DeadAt(*held, v, now, wall)
	isNew := liveness.IsNewGrant(w.seen, *held)
	w.seen = held
	if w.holdersSession() == nil {
		w.noteSilence(*held)
	}
	w.holder.Store(held)
	if isNew && !w.view.Ours {
		w.c.Local.ReportHolder(w.want.Key, held)
	}
	w.news = w.news || isNew
}

// isOurs reports whether a record shows an attempt of this client by which no caller holds
// the key: a grant or a queue entry, of this waiter or of an earlier call.
func (w *waiter) isOurs(r protocol.Record) bool {
	_, granted := w.tried.Find(r.Version)
	_, handed := attempts.Find(w.queue.entries, r.Grant)
	return granted || handed || w.c.IsInDoubt(w.want.Key, r.Version) || r.Grant != "" && w.c.IsInDoubt(w.want.Key, r.Grant)
}

// isDone returns an error if the record shows that the work of the call is done, no matter
// which client holds the key now. Later grants of this call cannot be applied: their
// condition is that the work is not done. A hand-over to an entry in the queue has no such
// condition.
func (w *waiter) isDone(item protocol.Item) error {
	if w.want.Once.None() || item == nil {
		return nil
	}
	shown, err := w.c.Decode(w.want.Key, item)
	if err == nil && w.want.Once.IsDone(shown.Done) {
		err = w.c.Errors.Done(w.want.Key, *shown.Done)
	}
	return err
}

// refresh reads what the record refers to, such as the holder's session, and then joins the
// queue. It does nothing while requests have to wait.
func (w *waiter) refresh() error {
	if w.pausing() > 0 {
		return nil
	}
	defer w.tell()
	if err := w.recall(); err != nil {
		return err
	}
	if err := w.lookAtSession(); err != nil {
		return err
	}
	if err := w.join(); err != nil {
		return err
	}
	w.succeeded(refreshing)
	return nil
}

// tell reports the holder and the position in the queue to the listener if either has
// changed. A waiter that joins the queue reports both at once.
func (w *waiter) tell() {
	q := &w.queue
	if w.seen == nil || w.view.Ours || !w.news && q.place+1 == q.told {
		return
	}
	w.news, q.told = false, q.place+1
	w.c.Listener.Report(w.ctx, core.Event{Kind: core.Waiting, Key: w.want.Key, Holder: w.seen, Position: q.told})
}

// holdersSession returns the session of the holder. It returns nil if the holder has no
// session. It also returns nil if the record shows an attempt of this client by which
// no caller holds the key.
func (w *waiter) holdersSession() *liveness.Session {
	if w.seen == nil || w.view.Ours {
		return nil
	}
	return w.c.Observer.SessionOf(*w.seen)
}

// lookAtSession reads the row of the holder's session if necessary, and finds out when the
// session would be dead. As long as the session is alive, all its locks are alive, even if
// their own records are old.
func (w *waiter) lookAtSession() error {
	session := w.holdersSession()
	if session == nil {
		return nil
	}
	fresh := w.c.PollMax
	if w.want.NoWait {
		fresh = 0
	}
	row, deadAt, err := session.Look(w.ctx, fresh)
	if err == nil {
		w.requests++
		w.view.Dead = deadAt
		w.noteSilence(row)
	}
	return err
}

// noteSilence records whether the holder appears dead, judged by the times in r. Some
// holders count as live whatever these times are: a holder that has renewed since it was
// first seen, a new holder, and a lock of this client.
func (w *waiter) noteSilence(r protocol.Record) {
	if w.met == nil {
		w.met = []string{r.Version}
	}
	w.silent = slices.Contains(w.met, r.Version) && w.c.Observer.LooksDead(r, w.c.Wall()) && !w.isOwnLock(*w.seen)
	if w.isWatched() {
		w.watched = max(w.watched, w.view.Dead)
	}
}

// isWatched reports whether the call waits for the key, in spite of NoWait, because the
// holder appears dead. Such a wait lasts until the holder renews or can be taken over.
func (w *waiter) isWatched() bool {
	return w.want.NoWait && !w.want.EvenIfDead && w.dropped == nil && w.seen != nil && w.silent
}

// step is a kind of request that a waiter sends.
type step int

// Values of step.
const (
	nothing    step = iota
	looking         // reads the record
	refreshing      // reads what the record refers to
	granting        // sends a grant, after reads and refreshes
)

// succeeded records that a request of kind s has succeeded. Pauses stay long while requests
// of another kind fail, such as reads of the holder's session.
func (w *waiter) succeeded(s step) {
	if s == w.failing || s == granting {
		w.failing = nothing
		w.pauses.Reset()
	}
}

// failed records that a request failed, and when it is to be repeated. It does nothing if
// err is nil. If a repetition does not help, the call goes on with its other keys. A returned
// error ends the wait.
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

// drop removes the key from the wait because the key cannot be acquired: its record is
// missing or damaged. If no other key of the call can be acquired either, drop returns the
// reasons.
func (w *waiter) drop(err error) error {
	w.dropped, w.ready = err, false
	if !w.missing {
		w.damaged.Store(&err)
		w.c.Listener.Report(w.ctx, core.Event{Kind: core.WaitError, Key: w.want.Key, Err: err})
	}
	w.c.Local.Pass(w.want.Key, nil)
	var errs []error
	for _, of := range w.waiters {
		if of.dropped == nil {
			return nil
		}
		errs = append(errs, of.dropped)
	}
	return errors.Join(errs...)
}

// repeat decides when a failed request is repeated. A returned error ends the wait.
func (w *waiter) repeat(s step, f *attempts.Failure) error {
	f = f.After(w.isAnswered())
	w.retryAt = durations.Sum(w.c.Now().Mono, w.c.Requests.NextPause(&w.pauses))
	if f.Cause == decide.ConditionFailed {
		return nil // returns nil, as the failed condition is an answer: the key was freed meanwhile
	}
	w.lastErr.Store(&f.Err)
	w.trouble.Report(w.ctx, w.c, w.want.Key, f)
	if f.Cause == decide.Refused {
		return w.c.Errors.Failed("acquire", w.want.Key, f.Err)
	}
	w.failing = s
	return nil
}

// isAnswered reports whether DynamoDB has answered a request for the key: in this call, in
// an earlier call that this one continues, or in a call that was before it in the local
// queue.
func (w *waiter) isAnswered() bool {
	return w.view.Known || core.IsGoingOn(w.values) || w.c.Local.IsKnown(w.want.Key)
}

// willRepeat reports whether a failed request is waiting to be repeated.
func (w *waiter) willRepeat() bool { return w.c.Now().Mono < w.retryAt }

// timeoutError returns the error of a call with NoWait that did not get an answer in time.
func (w *waiter) timeoutError() error {
	err := fmt.Errorf("gave up after %v", w.c.since(w.began))
	if last := w.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return w.c.Errors.Failed("acquire", w.want.Key, err)
}
