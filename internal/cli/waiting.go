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
// line rewritten every second, elsewhere one line per holder and then one a
// minute.
//
// It also says when DynamoDB does not answer: with the library's patience a
// command may be silent for long otherwise.
type waiting struct {
	say    *messages
	health *health
	now    func() time.Time

	mu      sync.Mutex
	key     leasehold.Key
	holder  *leasehold.Record
	permits *permitHolders // of whom holder is one; nil: it holds the key
	said    time.Time      // when holder was last said; zero: not yet
	trouble time.Time      // when DynamoDB's silence was last said

	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// watchWait begins to say what is waited for, until end is called.
func (a *app) watchWait(h *health) *waiting {
	w := &waiting{say: a.say, health: h, now: a.Now, stop: make(chan struct{}), done: make(chan struct{})}
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

func (w *waiting) end() {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		w.say.clear()
	})
}

// heldBy enters who holds the key, or one of its permits: while others may be
// free nobody is waited for.
func (w *waiting) heldBy(r leasehold.Record, permits *permitHolders) {
	if permits != nil && !permits.complete() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.key, w.holder, w.permits, w.said = r.Key, &r, permits, time.Time{}
	w.speak()
}

// waited reports whether somebody else was seen to hold the key.
func (w *waiting) waited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holder != nil
}

// speak says what is due. w.mu is held.
func (w *waiting) speak() {
	now := w.now()
	if silent, why := w.health.trouble(); silent >= silenceToSay {
		if w.trouble.IsZero() || now.Sub(w.trouble) >= sayAgain {
			w.say.text("no answer from DynamoDB for %s: still trying: %s", age(silent), why)
			w.trouble = now
		}
	} else if silent == 0 {
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
