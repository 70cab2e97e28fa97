package holding

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/seconds"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

const (
	repeatAfter = time.Minute // between two lines that say the same
	placeAfter  = time.Second // between two places in line: it may move many times a second
	tryingAfter = time.Second // as with -n, the wait for a holder that looks dead is reported
)

// wait says who holds a key while the command waits for it. On a terminal it rewrites
// one line every second. Elsewhere it writes one line when the wait begins and then one a
// minute, however often the holder changes, and one more for another place in line; events
// are as rare.
//
// That holds for a process, however often it waits: terms of an election may come and go
// by the second.
type wait struct {
	say *say.Messages
	now func() time.Time

	mu      sync.Mutex
	key     leasehold.Key
	holder  *leasehold.Record
	place   int      // in the record's line, from 1; 0: in none
	all     *allHeld // holder is one of them; nil: it holds the key
	grants  map[leasehold.Key]string
	holders int       // seen so far
	trying  bool      // as with -n: who holds the key is waited for only if it looks dead
	seenAt  time.Time // when a holder was seen first; zero: none yet
	line    told      // by the last line that is not rewritten
	event   told      // by the last event
	put     func()    // writes the event of a place that was not told yet; nil: it was

	stop func() // ends what start began
}

// told is what was said last of a wait.
type told struct {
	at      time.Time // zero: nothing yet
	place   int
	placeAt time.Time // when another place than before was told; zero: never
}

// due reports whether something is to be said now, and takes it for said if it is.
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

// newWait is a wait after an earlier one of this process, which has ended; nil: it is the
// first.
func newWait(user User, earlier *wait) *wait {
	w := &wait{say: user.Say, now: user.Now, grants: map[leasehold.Key]string{}}
	if earlier != nil {
		w.line, w.event = earlier.line, earlier.event
	}
	return w
}

// start begins to say who is waited for, until end is called.
func (w *wait) start() {
	w.stop = seconds.Each(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.report()
		w.writePut()
	})
}

// tries says whether the key is asked for as with -n, from now on.
func (w *wait) tries(nonblock bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = nonblock
	if w.holder != nil {
		w.seenAt = w.now()
	}
}

func (w *wait) end() {
	w.stop()
	w.say.Clear()
}

// noteHolder records who holds the key, or one of its permits. A holder of a
// permit is not reported before all permits were seen held, as another may be
// free. It returns whether it is time to write an event.
func (w *wait) noteHolder(r leasehold.Record, place int, all *allHeld) (due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if grant := holders.GrantOf(r); w.grants[r.Key] != grant {
		w.grants[r.Key] = grant
		w.holders++
	}
	if all != nil && !all.add(r) {
		return false
	}
	w.key, w.holder, w.place, w.all = r.Key, &r, place, all
	now := w.now()
	if w.trying { // most tries are over at once
		if w.seenAt.IsZero() {
			w.seenAt = now
		}
		return false
	}
	w.report()
	return w.event.due(place, now)
}

// putOff keeps an event that was not due, until its place in line may be told; nil: there is
// none any more. write is called by this wait, until it is over.
func (w *wait) putOff(write func(holdersSeen int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put = nil
	if write != nil && w.holder != nil && !w.trying && w.place > 0 && w.place != w.event.place {
		w.put = func() { write(w.holders) }
	}
}

// writePut writes the event that was put off, if it is due. w.mu is held.
func (w *wait) writePut() {
	if w.put != nil && w.event.due(w.place, w.now()) {
		w.put()
		w.put = nil
	}
}

// holdersSeen returns how many grants of the key or its permits were seen during
// the wait. 0: there was no wait.
func (w *wait) holdersSeen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == nil {
		return 0
	}
	return w.holders
}

// report writes the lines that are due. w.mu is held.
func (w *wait) report() {
	now := w.now()
	if w.holder == nil || w.trying && now.Sub(w.seenAt) < tryingAfter {
		return
	}
	if w.say.Rewrites() {
		w.say.Rewrite(w.text(now))
	} else if w.line.due(w.place, now) {
		w.say.Text("%s", w.text(now))
	}
}

func (w *wait) text(now time.Time) string {
	if w.all != nil {
		return "waiting: " + w.all.String()
	}
	line := "waiting for " + wording.Key(w.key)
	if w.place > 0 {
		line += ", " + wording.Ordinal(w.place) + " in line"
	}
	line += ", held by " + wording.Owner(w.holder.Owner)
	if !w.holder.GrantedAt.IsZero() {
		line += " for " + wording.Age(now.Sub(w.holder.GrantedAt))
	}
	if says := visible.Remark(w.holder.Data); says != "" {
		line += ": " + says
	}
	if w.trying {
		line = fmt.Sprintf("%s, who looks dead", line)
	}
	return line
}
