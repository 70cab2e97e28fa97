package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

const (
	repeatAfter = time.Minute // between two lines that say the same
	tryingAfter = time.Second // as with -n, the wait for a holder that looks dead is reported
)

// waitReporter reports who holds a key while the command waits for it. On a
// terminal it rewrites one line every second. Elsewhere it writes one line when
// the wait begins and then one a minute, however often the holder changes; events
// are as rare.
//
// That holds for a process, however often it waits: see follow.
//
// It also reports that DynamoDB does not answer or throttles, at most once a
// minute, and when that is over: requests are retried for a long time, and
// otherwise the command would be silent meanwhile.
type waitReporter struct {
	say   *say.Messages
	store *store.Store
	now   func() time.Time

	mu        sync.Mutex
	key       leasehold.Key
	holder    *leasehold.Record
	permits   *permitHolders // holder is one of them; nil: it holds the key
	grants    map[leasehold.Key]string
	holders   int       // seen so far
	trying    bool      // as with -n: who holds the key is waited for only if it looks dead
	seenAt    time.Time // when a holder was seen first; zero: none yet
	lastLine  time.Time // when holder was last reported; zero: not yet
	lastEvent time.Time // when the last event was written; zero: none yet
	trouble   requests.Teller

	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// startWaitReporter starts to report the wait, until end is called.
func (a *app) startWaitReporter(s *store.Store) *waitReporter {
	w := newWaitReporter(a.say, s, a.Now)
	if a.wait != nil {
		w.follow(a.wait)
	}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.mu.Lock()
				w.report()
				w.mu.Unlock()
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

func newWaitReporter(say *say.Messages, s *store.Store, now func() time.Time) *waitReporter {
	return &waitReporter{
		say: say, store: s, now: now, grants: map[leasehold.Key]string{},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// follow makes w as rare together with the reporter of an earlier wait, which has
// ended, as one of them is alone: terms of an election may come and go by the second.
func (w *waitReporter) follow(earlier *waitReporter) {
	w.lastLine, w.lastEvent = earlier.lastLine, earlier.lastEvent
	w.trouble.Since(earlier.trouble)
}

// tries says whether the key is asked for as with -n, from now on.
func (w *waitReporter) tries(nonblock bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = nonblock
	if w.holder != nil {
		w.seenAt = w.now()
	}
}

func (w *waitReporter) end() {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		w.say.Clear()
	})
}

// noteHolder records who holds the key, or one of its permits. A holder of a
// permit is not reported before all permits were seen held, as another may be
// free. It returns whether it is time to write an event.
func (w *waitReporter) noteHolder(r leasehold.Record, permits *permitHolders) (due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if grant := holders.GrantOf(r); w.grants[r.Key] != grant {
		w.grants[r.Key] = grant
		w.holders++
	}
	if permits != nil && !permits.complete() {
		return false
	}
	w.key, w.holder, w.permits = r.Key, &r, permits
	now := w.now()
	if w.trying { // most tries are over at once
		if w.seenAt.IsZero() {
			w.seenAt = now
		}
		return false
	}
	w.report()
	if !w.lastEvent.IsZero() && now.Sub(w.lastEvent) < repeatAfter {
		return false
	}
	w.lastEvent = now
	return true
}

// holdersSeen returns how many grants of the key or its permits were seen during
// the wait. 0: there was no wait.
func (w *waitReporter) holdersSeen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == nil {
		return 0
	}
	return w.holders
}

// report writes the lines that are due. w.mu is held.
func (w *waitReporter) report() {
	now := w.now()
	w.reportTrouble(now)
	if w.holder == nil || w.trying && now.Sub(w.seenAt) < tryingAfter {
		return
	}
	if w.say.Rewrites() {
		w.say.Rewrite(w.line(now))
	} else if w.lastLine.IsZero() || now.Sub(w.lastLine) >= repeatAfter {
		w.say.Text("%s", w.line(now))
		w.lastLine = now
	}
}

func (w *waitReporter) line(now time.Time) string {
	if w.permits != nil {
		return "waiting: " + w.permits.all()
	}
	line := "waiting for " + wording.Key(w.key) + ", held by " + wording.Owner(w.holder.Owner)
	if !w.holder.GrantedAt.IsZero() {
		line += " for " + wording.Age(now.Sub(w.holder.GrantedAt))
	}
	if w.trying {
		line = fmt.Sprintf("%s, who looks dead", line)
	}
	return line
}

// reportTrouble says that requests fail, or that they no longer do. w.mu is held.
func (w *waitReporter) reportTrouble(now time.Time) {
	n, due := w.trouble.Tell(w.store.Health.Trouble(w.store.Server()), now)
	if !due {
		return
	}
	e := say.NewEvent(n.Kind, now)
	e.LastsMs, e.Error, e.Advice = say.Millis(n.Lasts), n.Reason, n.Advice
	w.say.Tell(e, "%s", n.Line)
}
