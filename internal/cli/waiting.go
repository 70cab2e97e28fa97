package cli

import (
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
)

const (
	sayAgain     = time.Minute     // between two lines that say the same
	silenceToSay = 3 * time.Second // of DynamoDB, before it is mentioned
)

// waiting says who is waited for while a key is acquired: on a terminal one
// line rewritten every second, elsewhere one line when the wait begins and
// then one a minute, however often the holder changes. Events are as rare.
//
// It also says when DynamoDB does not answer, or refuses for want of capacity:
// with the library's patience a command may be silent for long otherwise.
type waiting struct {
	say    *messages
	health *health
	from   string // whose answers are waited for
	now    func() time.Time

	mu      sync.Mutex
	key     leasehold.Key
	holder  *leasehold.Record
	permits *permitHolders // of whom holder is one; nil: it holds the key
	grants  map[leasehold.Key]string
	holders int       // met so far
	said    time.Time // when holder was last said; zero: not yet
	told    time.Time // when an event last told of the wait; zero: not yet
	trouble time.Time // when trouble with requests was last said

	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// watchWait begins to say what is waited for, until end is called.
func (a *app) watchWait(s *store) *waiting {
	w := newWaiting(a.say, &s.health, a.Now)
	if s.file != "" {
		w.from = s.location
	}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.mu.Lock()
				w.speak()
				w.mu.Unlock()
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

func newWaiting(say *messages, h *health, now func() time.Time) *waiting {
	return &waiting{
		say: say, health: h, from: "DynamoDB", now: now, grants: map[leasehold.Key]string{},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

func (w *waiting) end() {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		w.say.clear()
	})
}

// heldBy enters who holds the key, or one of its permits: while others may be
// free nobody is waited for. It reports whether an event of that is due.
func (w *waiting) heldBy(r leasehold.Record, permits *permitHolders) (due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if grant := grantOf(r); w.grants[r.Key] != grant {
		w.grants[r.Key] = grant
		w.holders++
	}
	if permits != nil && !permits.complete() {
		return false
	}
	w.key, w.holder, w.permits = r.Key, &r, permits
	w.speak()
	now := w.now()
	if !w.told.IsZero() && now.Sub(w.told) < sayAgain {
		return false
	}
	w.told = now
	return true
}

// waited returns how many others were seen to hold the key, or its permits, in
// a wait for it; 0: there was no wait.
func (w *waiting) waited() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == nil {
		return 0
	}
	return w.holders
}

// speak says what is due. w.mu is held.
func (w *waiting) speak() {
	now := w.now()
	if t := w.health.trouble(); t.lasts >= silenceToSay {
		if w.trouble.IsZero() || now.Sub(w.trouble) >= sayAgain {
			w.say.note("%s", t.line(w.from))
			w.trouble = now
		}
	} else if t.lasts == 0 {
		w.trouble = time.Time{}
	}
	if w.holder == nil {
		return
	}
	if w.say.rewrites() {
		w.say.rewrite(w.line(now))
	} else if w.said.IsZero() || now.Sub(w.said) >= sayAgain {
		w.say.text("%s", w.line(now))
		w.said = now
	}
}

func (w *waiting) line(now time.Time) string {
	if w.permits != nil {
		return "waiting: " + w.permits.all()
	}
	line := "waiting for " + printable(w.key.String()) + ", held by " + shortOwner(w.holder.Owner)
	if !w.holder.GrantedAt.IsZero() {
		line += " for " + age(now.Sub(w.holder.GrantedAt))
	}
	return line
}
