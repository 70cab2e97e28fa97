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
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

const (
	repeatAfter = time.Minute // time after which the same line is printed again
	placeAfter  = time.Second // minimum time between two reports of the queue position, which may change many times a second
	tryingAfter = time.Second // with -n, how long leasehold observes a holder that appears dead before it prints that it waits
)

// A wait reports the holder while the command waits: at the start, once a minute, and on each new
// queue position. It reports new positions at most once a second. These limits apply to all waits
// of the process together, because an election may begin a wait every second.
type wait struct {
	say  *say.Messages
	now  func() time.Time
	tell func(e leasehold.Event, holdersSeen int) // emits an event

	mu      sync.Mutex
	event   leasehold.Event // last waiting event, which contains the holder; zero before the first
	over    bool            // true if the library call that emitted event has returned
	place   int             // queue position in the record; 1 is the head, 0 means that this client is not in the queue
	all     *allHeld        // holders of all keys or permits; nil if the command waits for one key only
	grants  map[leasehold.Key]string
	former  string    // identifies the grant of this process's previous term in the election; empty if there was none
	checks  bool      // true if the wait has reported that the record still contains the grant that former identifies
	holders int       // number of holders seen so far
	trying  bool      // true with -n: the command observes a holder that appears dead
	seenAt  time.Time // when the first holder was seen; zero if none was seen yet
	told    told      // last report: an event, or a line that is not rewritten

	end func() // ends the reports that start began
}

// told contains the time of the last report about a wait, and the queue position in that
// report.
type told struct {
	at      time.Time // time of the last report; zero before the first
	place   int
	placeAt time.Time // when a new queue position was last reported; zero if never
}

// due reports whether a new line is due at the time now. The parameter "place" is the client's
// position in the queue. If a line is due, the method records that the line was written.
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

// newWait returns a new wait. The parameter "earlier" is this process's previous wait, or nil. The
// parameter "former" identifies the grant of the process's previous term, and is empty if there was
// none.
func newWait(user User, earlier *wait, former string) *wait {
	w := &wait{say: user.Say, now: user.Now, grants: map[leasehold.Key]string{}, former: former}
	w.tell = func(e leasehold.Event, holdersSeen int) { w.say.ClientEvent(e, w.now(), holdersSeen) }
	if earlier != nil {
		w.told = earlier.told
	}
	return w
}

// start makes w report the holder every second, until end is called.
func (w *wait) start() {
	w.end = w.say.EachSecond(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.report()
	})
}

// tries is called before each attempt to acquire. If nonblock is true, as with -n, the
// attempt waits only for a holder that appears dead.
func (w *wait) tries(nonblock bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = nonblock
	if w.event.Holder != nil {
		w.seenAt = w.now()
	}
}

// saw handles an event e of the lock client. If the client needs only one of several keys or
// permits, the parameter "all" is not nil. In that case, saw reports nothing until it has seen a
// holder of each of them, because one of them may still be free.
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
	if w.former != "" && grant == w.former { // this process itself has this grant, from its previous term
		if !w.checks {
			w.checks = true
			w.say.Text("checking whether the former grant of %s to this process is still current", r.Key.String())
		}
		return
	}
	if all != nil {
		if !all.add(r) {
			return
		}
		place = 0 // no position is shown, because the client waits in several queues
	}
	w.event, w.place, w.all = e, place, all
	if w.seenAt.IsZero() {
		w.seenAt = w.now()
	}
	if !w.trying { // with -n, only the timer reports, because most attempts return immediately
		w.report()
	}
}

// holdersSeen returns how many holders of the key, or of its permits, the wait has seen. An owner
// with two grants counts as two holders. holdersSeen returns 0 if the command did not wait.
func (w *wait) holdersSeen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event.Holder == nil && !w.checks {
		return 0
	}
	return w.holders
}

// report writes a line and an event if they are due. The caller must hold w.mu.
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
	if due && !w.trying { // with -n, the wait for a holder that appears dead is reported only as text
		w.tell(w.event, w.holders)
	}
}

func (w *wait) text(now time.Time) string {
	if w.all != nil {
		return "waiting: " + w.all.String()
	}
	holder := w.event.Holder
	line := "waiting for " + holder.Key.String() + ", held by " + wording.Owner(holder.Owner)
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

// allHeld collects the holders that the client sees while it waits for one of several
// permits, or for one of several keys. It is safe for concurrent use.
type allHeld struct {
	text  string          // message for the case that all keys or permits are held
	n     int             // number of keys or permits
	keys  []leasehold.Key // keys in the order in which the user named them; nil for permits
	mu    sync.Mutex
	owner map[leasehold.Key]string
}

// allHeld returns an allHeld for w. It returns nil if w is one key or one permit, or if the
// command needs all of the keys.
func (w *Wanted) allHeld(keys []leasehold.Key) *allHeld {
	owner := map[leasehold.Key]string{}
	switch {
	case w.Permits > 1:
		return &allHeld{text: fmt.Sprintf("all %d permits of %s are held", w.Permits, keys[0].String()), n: w.Permits, owner: owner}
	case w.Any && len(keys) > 1:
		return &allHeld{text: wording.KeysAre(keys) + " held", n: len(keys), keys: keys, owner: owner}
	}
	return nil
}

// add records the holder that r contains. It returns true once it has recorded a holder of
// every key or permit.
func (a *allHeld) add(r leasehold.Record) (complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owner[r.Key] = wording.Owner(r.Owner)
	return len(a.owner) >= a.n
}

// String returns the message and the names of the holders, in the order of their keys.
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

// allHeldError is the error of a wait during which each of several keys or permits was
// held.
type allHeldError struct {
	text string // the message of allHeld, with the names of the holders
	err  error
}

func (e *allHeldError) Error() string {
	if waited, is := failure.As[*failure.WaitedError](e.err); is {
		return e.text + ": " + waited.Error()
	}
	return e.text
}

func (e *allHeldError) Unwrap() error { return e.err }

// A client recognizes a dead holder only after observing it for a whole lease. With a shorter
// --wait, the client could never do so, even if the user repeated the command. So after such a
// wait, the command tries once more, as with -n: if the holder appears dead, the command observes
// it for a whole lease.

// wasTooShort reports whether the wait, which failed with err, was shorter than a holder's lease.
// It also returns true if err does not contain every holder's lease. A shared lease is not in the
// record, and an error for several keys or permits contains only one holder.
func (w Wanted) wasTooShort(err error) bool {
	held, isHeld := failure.As[*leasehold.HeldError](err)
	if !isHeld || !errors.As(err, new(*failure.WaitedError)) || failure.Interrupted(err) != nil {
		return false
	}
	return w.Permits > 1 || len(w.Keys) > 1 || held.Holder.Session != "" || held.Holder.Lease > w.Wait
}

// afterWait adds the total waiting time to err, the error of the attempt after a wait.
func (w Wanted) afterWait(err error, took time.Duration) error {
	if held, is := failure.As[*leasehold.HeldError](err); is && held.Err == nil {
		held.Err = &failure.WaitedError{Wait: max(w.Wait, took.Truncate(time.Second))}
	}
	return err
}

// afterSilence replaces err, the error of a wait, by an OpError if the store answered no request.
// It is then unknown whether the key is held, but err's exit code would say that another process
// holds it. The parameter "answers" is the number of answered requests.
func afterSilence(err error, answers int, table string, key leasehold.Key) error {
	if answers > 0 || !errors.As(err, new(*failure.WaitedError)) || !failure.NotGranted(err) || errors.Is(err, leasehold.ErrHeld) {
		return err // the store answered, or err says that the key is held, or err itself is a failure
	}
	return &leasehold.OpError{Op: "acquire", Table: table, Key: key, Err: context.DeadlineExceeded}
}
