package holding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

const (
	repeatAfter = time.Minute // time after which an identical line is repeated
	placeAfter  = time.Second // least time between reports of two queue positions, because the position may change many times a second
	tryingAfter = time.Second // with -n, the wait for a holder that appears dead is reported only after this time
)

// wait reports the holder of a key while the command waits for the key. On a terminal it
// rewrites one line every second. Elsewhere it writes one line when the wait begins, and
// then one line a minute, however often the holder changes. It also writes one line for
// each new position in the queue. Each report is also an event, even on a terminal.
//
// These limits apply to all waits of a process together, because terms of an election may
// change every second.
type wait struct {
	say  *say.Messages
	now  func() time.Time
	tell func(e leasehold.Event, holdersSeen int) // writes an event

	mu      sync.Mutex
	event   leasehold.Event // last event of the wait, with the holder; zero before the first
	over    bool            // true if the call that sent event has ended, for example by a grant
	place   int             // position in the record's queue, from 1; 0 if this client is not in the queue
	all     *allHeld        // the holders of all keys or permits; nil if there is only one key to wait for
	grants  map[leasehold.Key]string
	former  string    // grant of this process's last term; empty if there is none
	checks  bool      // true if the key was seen with the grant in former, and this was reported
	holders int       // number of holders seen so far
	trying  bool      // true with -n: the command waits only for a holder that appears dead
	seenAt  time.Time // when the first holder was seen; zero before that
	told    told      // the last report: an event, or a line that is not rewritten

	stop func() // ends the reports that start began
}

// told is the last report about a wait.
type told struct {
	at      time.Time // time of the last report; zero before the first
	place   int
	placeAt time.Time // when a new position was reported; zero if never
}

// due reports whether a report is due now. If so, it records the report as made.
func (s *told) due(place int, now time.Time) bool {
	moved := place > 0 && place != s.place
	if !s.at.IsZero() && now.Sub(s.at) < repeatAfter && (!moved || !s.placeAt.IsZero() && now.Sub(s.placeAt) < placeAfter) {
		return false
	}
	s.at = now
	if moved {
		s.placeAt = now
	}
	s.place = place
	return true
}

// newWait returns a wait that follows the wait earlier. earlier is the previous wait of
// this process, which has ended; it is nil for the first wait. former is the grant of the
// term that followed earlier, or empty.
func newWait(user User, earlier *wait, former string) *wait {
	w := &wait{say: user.Say, now: user.Now, grants: map[leasehold.Key]string{}, former: former}
	w.tell = func(e leasehold.Event, holdersSeen int) { w.say.ClientEvent(e, w.now(), holdersSeen) }
	if earlier != nil {
		w.told = earlier.told
	}
	return w
}

// start begins to report the holder each second, until end is called.
func (w *wait) start() {
	w.stop = seconds.Each(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.report()
	})
}

// tries sets whether the command now waits only for a holder that appears dead, as with -n.
func (w *wait) tries(nonblock bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = nonblock
	if w.event.Holder != nil {
		w.seenAt = w.now()
	}
}

func (w *wait) end() {
	w.stop()
	w.say.Clear()
}

// saw records an event of the client. A waiting event contains the holder of the key, or
// the holder of one of its permits. The holder of a permit is not reported until all
// permits were seen held, because another permit may be free. When the call ends, the
// reports end until the next waiting event.
func (w *wait) saw(e leasehold.Event, all *allHeld) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case leasehold.EventWaiting:
		w.over = false
	case leasehold.EventGranted, leasehold.EventDone, leasehold.EventGaveUp:
		w.over = true
		return
	default:
		return
	}
	r, place := *e.Holder, e.Position
	grant := holders.GrantOf(r)
	if w.grants[r.Key] != grant {
		w.grants[r.Key] = grant
		w.holders++
	}
	if w.former != "" && grant == w.former { // the grant is this process's own
		if !w.checks {
			w.checks = true
			w.say.Text("checking whether the former grant of %s to this process is still current", wording.Key(r.Key))
		}
		return
	}
	if all != nil {
		if !all.add(r) {
			return
		}
		place = 0 // the waiter is in several queues: no position is shown
	}
	w.event, w.place, w.all = e, place, all
	if w.seenAt.IsZero() {
		w.seenAt = w.now()
	}
	if !w.trying { // with -n nothing is reported here, because most attempts end at once
		w.report()
	}
}

// holdersSeen returns how many grants of the key or its permits were seen during
// the wait, 0 if there was no wait.
func (w *wait) holdersSeen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event.Holder == nil && !w.checks {
		return 0
	}
	return w.holders
}

// report writes the line and the event that are due. The caller must hold w.mu.
func (w *wait) report() {
	now := w.now()
	if w.event.Holder == nil || w.over || w.trying && now.Sub(w.seenAt) < tryingAfter {
		return
	}
	due := w.told.due(w.place, now)
	if w.say.Rewrites() {
		w.say.Rewrite(w.text(now))
	} else if due {
		w.say.Text("%s", w.text(now))
	}
	if due && !w.trying { // with -n, the wait for a dead holder is reported as text only
		w.tell(w.event, w.holders)
	}
}

func (w *wait) text(now time.Time) string {
	if w.all != nil {
		return "waiting: " + w.all.String()
	}
	holder := w.event.Holder
	line := "waiting for " + wording.Key(holder.Key) + ", held by " + wording.Owner(holder.Owner)
	if !holder.GrantedAt.IsZero() {
		line += " for " + wording.Age(now.Sub(holder.GrantedAt))
	}
	if w.place > 0 {
		line += fmt.Sprintf(", number %d in the queue", w.place)
	}
	if says := visible.Remark(holder.Data); says != "" {
		line += ": " + visible.Word(says)
	}
	if w.trying {
		line = fmt.Sprintf("%s, who looks dead", line)
	}
	return line
}

// allHeld collects the holders that are seen during a wait for a permit, or for one of
// several keys. It is safe for concurrent use.
type allHeld struct {
	text  string          // text to show when all keys or permits are held
	n     int             // number of keys or permits
	keys  []leasehold.Key // the keys in the order in which the user named them; nil for permits
	mu    sync.Mutex
	owner map[leasehold.Key]string
}

// allHeld returns an allHeld for the wait. It returns nil if there is one holder to wait
// for, or if all keys are wanted.
func (w *Wanted) allHeld(keys []leasehold.Key) *allHeld {
	owner := map[leasehold.Key]string{}
	switch {
	case w.Permits > 1:
		return &allHeld{text: fmt.Sprintf("all %d permits of %s are held", w.Permits, wording.Key(keys[0])), n: w.Permits, owner: owner}
	case w.Any && len(keys) > 1:
		return &allHeld{text: wording.KeysAre(keys) + " held", n: len(keys), keys: keys, owner: owner}
	}
	return nil
}

// add adds a holder, and reports whether each key or permit was seen held.
func (a *allHeld) add(r leasehold.Record) (complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owner[r.Key] = wording.Owner(r.Owner)
	return len(a.owner) >= a.n
}

// String returns the text and the names of the holders, in the order of their keys.
func (a *allHeld) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var owners []string
	keys := a.keys
	if keys == nil {
		keys = slices.SortedFunc(maps.Keys(a.owner), leasehold.Key.Compare)
	}
	for _, key := range keys {
		if owner, ok := a.owner[key]; ok {
			owners = append(owners, owner)
		}
	}
	if len(owners) == 0 {
		return a.text
	}
	return a.text + ", by " + wording.List(owners)
}

// allHeldError is the error of a wait in which all of several keys or permits were held.
type allHeldError struct {
	text string // names the holders
	err  error
}

func (e *allHeldError) Error() string {
	if waited, is := failure.As[*failure.WaitedError](e.err); is {
		return e.text + ": " + waited.Error()
	}
	return e.text
}

func (e *allHeldError) Unwrap() error { return e.err }

// If a waiter waits for less than a lease, it never sees a dead holder's lease expire,
// however often it tries. So after such a short wait, the command requests the keys once
// more, as with -n. If a holder appears dead, the command then observes it for its lease.

// wasTooShort reports whether the wait has ended with err because a holder was not observed
// for its whole lease. It also returns true if that is unknown: a lock under a shared lease
// does not show the length of the lease, and the error of several keys shows only one
// holder.
func (w Wanted) wasTooShort(err error) bool {
	held, isHeld := failure.As[*leasehold.HeldError](err)
	if !isHeld || !errors.As(err, new(*failure.WaitedError)) || failure.Interrupted(err) != nil {
		return false
	}
	return w.Permits > 1 || len(w.Keys) > 1 || held.Holder.Session != "" || held.Holder.Lease > w.Wait
}

// afterWait adds the total waiting time to err, the result of the request after a wait.
func (w Wanted) afterWait(err error, took time.Duration) error {
	if held, is := failure.As[*leasehold.HeldError](err); is && held.Err == nil {
		held.Err = &failure.WaitedError{Wait: max(w.Wait, took.Truncate(time.Second))}
	}
	return err
}

// afterSilence returns the error of a wait that err has ended. If requests were answered
// during the wait, it returns err. If no request was answered, it is unknown whether the
// key is held, so afterSilence returns another error. A script that skips work while
// another process does it must not take this unknown state for an answer.
func afterSilence(err error, answers int, table string, key leasehold.Key) error {
	if answers > 0 || !errors.As(err, new(*failure.WaitedError)) || !failure.NotGranted(err) || errors.Is(err, leasehold.ErrHeld) {
		return err // requests were answered, or the key is held, or err itself describes the failure
	}
	return &leasehold.OpError{Op: "acquire", Table: table, Key: key, Err: context.DeadlineExceeded}
}
