package holding

import (
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// renewals follows the renewals of the locks that CMD runs under. Of each it
// reports once that they fail, and once that they succeed again.
type renewals struct {
	say     *say.Messages
	where   string        // the store, in messages
	shared  bool          // one lease is renewed for all of them
	renewed chan struct{} // sent to after each successful renewal

	mu     sync.Mutex
	failed map[leasehold.Key]failing // those whose last renewal failed
}

// failing is how the renewals of a key fail.
type failing struct {
	last   error // of the last
	answer error // of the last that had an answer, if later ones had none; nil: none, or last is it
}

// then is how they fail after one more.
func (f failing) then(err error) failing {
	switch {
	case !failure.IsTimeout(err):
		f.answer = nil
	case f.last != nil && !failure.IsTimeout(f.last):
		f.answer = f.last
	}
	f.last = err
	return f
}

func newRenewals(say *say.Messages, where string, shared bool) *renewals {
	return &renewals{say: say, where: where, shared: shared, renewed: make(chan struct{}, 1), failed: map[leasehold.Key]failing{}}
}

// event must be called for every event of the locks.
func (r *renewals) event(e leasehold.Event) {
	switch e.Kind {
	case leasehold.EventRenewed:
		if r.fails(e.Key, nil) {
			r.say.Text("renewed %s", r.name(e.Key))
		}
		select {
		case r.renewed <- struct{}{}:
		default:
		}
	case leasehold.EventRenewError:
		if !r.fails(e.Key, e.Err) {
			r.say.Text("%s could not be renewed, trust ends in %s: still trying: %s",
				r.name(e.Key), wording.Age(e.Remaining), failure.Text(e.Err, r.where))
		}
	}
}

// fails notes why the last renewal of a key failed, nil if it did not, and returns
// whether the one before had failed.
func (r *renewals) fails(key leasehold.Key, now error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, before := r.failed[key]
	if now == nil {
		delete(r.failed, key)
	} else {
		r.failed[key] = f.then(now)
	}
	return before
}

// why says why the last renewal of one of the keys failed, "" if none did. What had no
// answer in time says less than the answer before it.
func (r *renewals) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.failed {
		why := failure.Text(f.last, r.where)
		if f.answer != nil {
			why += "; before that: " + failure.Reason(f.answer)
		}
		return why
	}
	return ""
}

// name names what is renewed: a key, or what --shared renews instead of each.
func (r *renewals) name(key leasehold.Key) string {
	if r.shared {
		return "the shared lease"
	}
	return wording.Key(key)
}
