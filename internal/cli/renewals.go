package cli

import (
	"sync"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

// renewals follows the renewals of the locks that CMD runs under. Of each it
// reports once that they fail, and once that they succeed again.
type renewals struct {
	app     *app
	store   *store
	wait    *waitReporter // of the wait for this lock
	renewed chan struct{} // sent to after each successful renewal

	mu     sync.Mutex
	failed map[leasehold.Key]error // of those whose last renewal failed
}

func (a *app) newRenewals(s *store) *renewals {
	return &renewals{app: a, store: s, wait: s.wait, renewed: make(chan struct{}, 1), failed: map[leasehold.Key]error{}}
}

// event must be called for every event of the lock.
func (r *renewals) event(e leasehold.Event) {
	say := r.app.say
	r.app.clientEvent(r.store, e, r.wait.holdersSeen())
	switch e.Kind {
	case leasehold.EventRenewed:
		if r.fails(e.Key, nil) {
			say.text("renewed %s", r.name(e.Key))
		}
		select {
		case r.renewed <- struct{}{}:
		default:
		}
	case leasehold.EventRenewError:
		if !r.fails(e.Key, e.Err) {
			say.text("%s could not be renewed, trust ends in %s: still trying: %s",
				r.name(e.Key), age(e.Remaining), r.store.errorText(e.Err))
		}
	}
}

// fails notes why the last renewal of a key failed, nil if it did not, and returns
// whether the one before had failed.
func (r *renewals) fails(key leasehold.Key, now error) (before bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, before = r.failed[key]
	if now == nil {
		delete(r.failed, key)
	} else {
		r.failed[key] = now
	}
	return before
}

// failure returns why the last renewal of one of the keys failed, nil if none did.
func (r *renewals) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.failed {
		return err
	}
	return nil
}

// name names what is renewed: a key, or what --shared renews instead of each.
func (r *renewals) name(key leasehold.Key) string {
	proto, err := records.Of(r.store.layout)
	if sharing, ok := proto.(protocol.Sharing); err == nil && ok && sharing.IsSessionKey(protocol.Key(key)) {
		return "the shared lease"
	}
	return printable(key.String())
}
