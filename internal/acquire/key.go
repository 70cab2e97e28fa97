package acquire

import (
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

// TryFor is how long a call with NoWait repeats requests that have no answer.
const TryFor = 10 * time.Second

// waiter is one key that a call wants: what is known of its record, and what was sent to be
// granted it.
type waiter struct {
	*call
	want   *Want
	manual bool // once the call has returned nothing is sent in the background

	local   *place        // in the local queue; nil if it needs no turn, or waits for it apart
	ready   bool          // it has the turn of its local queue
	from    time.Duration // monotonic: until then other processes go first
	missing bool          // it has no record, as it must
	dropped error         // why the key cannot be acquired; nil if it may be

	answered bool // DynamoDB has answered a request for the key

	tried   attempts.Sequence[GrantAttempt]
	unclear bool          // the last attempt has had no answer
	failing step          // the step that failed last, and has not succeeded since
	retryAt time.Duration // monotonic: until then nothing is repeated
	pauses  attempts.Pauses

	view    decide.View
	asked   decide.Instant   // when the request was sent whose reply is observed
	took    time.Duration    // round trip of that request
	seen    *protocol.Record // the record as last shown, if held by another
	met     []string         // the versions of the holders that were seen first; nil before any was
	silent  bool             // these holders appear dead
	session Session          // the session to be granted under; nil for none
	queue   inQueue          // its place in the record's queue
	news    bool             // the listener does not know the holder

	holder  atomic.Pointer[protocol.Record] // seen, for the caller
	lastErr atomic.Pointer[error]           // why the last request failed, for the caller; nil if it did not
}

// newWaiter returns the waiter for one key of a call. It knows nothing of the key yet.
func (w *call) newWaiter(want *Want) *waiter {
	c := w.c
	return &waiter{
		call: w, want: want, manual: want.Manual,
		view:   decide.View{PollMin: c.PollMin, PollMax: c.PollMax},
		pauses: c.Pauses(),
		queue:  inQueue{since: c.Wall().Add(-durations.Less(c.Now().Mono, w.began.Mono)), place: -1},
	}
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
	if w.failing == looking { // a failed read does not delay a takeover
		view.Looked = now
	}
	move, wait := decide.Next(view, now, u)
	if move != decide.TakeOver || !w.isOwnLock(*w.seen) {
		return move, wait
	}
	view.Dead = math.MaxInt64
	return decide.Next(view, now, u)
}

// isDead reports whether the holder is dead, so that a grant takes the key over.
func (w *waiter) isDead() bool {
	move, _ := w.move(0)
	return move == decide.TakeOver
}

// isOwnLock reports whether a holder that a record shows is a lock of this client. It may
// hold on to the key through an outage.
func (w *waiter) isOwnLock(r protocol.Record) bool { return w.c.keeper.Holds(w.want.Key, r.Grant) }

// pausing returns for how long nothing is sent for the key.
func (w *waiter) pausing() time.Duration {
	if w.from == 0 && w.retryAt == 0 { // neither is set: no clock need be read
		return 0
	}
	return durations.Less(max(w.from, w.retryAt), w.c.Now().Mono)
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

// observe notes what a reply has shown. An error ends the wait for this key.
func (w *waiter) observe(item protocol.Item) error {
	wall, now := w.c.Wall(), w.c.Now()
	w.trouble.Passed()
	w.answered, w.view.Looked = true, now.Mono
	w.lastErr.Store(nil)
	w.view.Known, w.view.Free, w.view.Ours = true, true, false
	held, v, err := w.c.Observer.Observe(w.want.Key, item, now)
	if err != nil {
		return err
	}
	if err := w.noteQueue(item, held); err != nil {
		return err
	}
	if err := w.isDone(item); err != nil {
		w.seen = held // for leaveQueue: the key may have been handed to this waiter
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

// noteHolder notes who holds the key, as a reply has shown it at now, when the wall clock
// showed wall; v says since when that version is known.
func (w *waiter) noteHolder(held *protocol.Record, v observed.Version, now decide.Instant, wall time.Time) {
	w.view.Free, w.view.Ours = false, w.isOurs(held.Version) || w.isEntry(held.Grant)
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

// isOurs reports whether a version is an unclaimed attempt of this client.
func (w *waiter) isOurs(version string) bool {
	return w.c.IsInDoubt(w.want.Key, version) || slices.Contains(w.tried.Versions(), version)
}

// isDone returns the error of a call whose work is done, as a record shows, whoever holds
// it by now. Attempts of this call can no longer be granted the key, as each has the
// condition that the work is not done; but an entry in the queue can.
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

// refresh finds out what the record does not show, and joins its queue, unless nothing is to
// be sent now.
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

// tell reports the holder and the position in the queue to the listener, if either is new. A
// waiter that joins the queue reports both at once.
func (w *waiter) tell() {
	q := &w.queue
	if w.seen == nil || w.view.Ours || !w.news && q.place+1 == q.told {
		return
	}
	w.news, q.told = false, q.place+1
	w.c.Listener.Report(w.ctx, core.Event{Kind: core.Waiting, Key: w.want.Key, Holder: w.seen, Position: q.told})
}

// holdersSession returns the session that the holder belongs to. Nil: the holder has no
// session, or is an attempt of our own that no client treats as held.
func (w *waiter) holdersSession() *liveness.Session {
	if w.seen == nil || w.view.Ours {
		return nil
	}
	return w.c.Observer.SessionOf(*w.seen)
}

// lookAtSession finds out until when the holder's session keeps it alive. That alone
// counts, even if its own record has not changed for long.
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

// noteSilence notes whether the holder looks dead by r, which it renews: its version is among
// those that were seen first. One that has renewed, or is new, is live, whatever its times
// say, and so is a lock of this client.
func (w *waiter) noteSilence(r protocol.Record) {
	if w.met == nil {
		w.met = []string{r.Version}
	}
	w.silent = slices.Contains(w.met, r.Version) && w.c.Observer.LooksDead(r, w.c.Wall()) && !w.isOwnLock(*w.seen)
	if w.isWatched() {
		w.watched = max(w.watched, w.view.Dead)
	}
}

// isWatched reports whether the key is waited for although the call has NoWait.
func (w *waiter) isWatched() bool {
	return w.want.ObservesDead() && w.dropped == nil && w.seen != nil && w.silent
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
	w.lastErr.Store(&f.Err)
	w.trouble.Report(w.ctx, w.c, w.want.Key, f)
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

// timeoutError is the error of a call with NoWait that has had no answer since it began.
func (w *waiter) timeoutError() error {
	err := fmt.Errorf("gave up after %v", w.c.since(w.began))
	if last := w.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return w.c.Errors.Failed("acquire", w.want.Key, err)
}
