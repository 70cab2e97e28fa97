package cli

import (
	"github.com/leasehold-go/leasehold"
)

// renewals follows those of a lock under which a CMD runs: failing ones are
// said once, and so is their end.
type renewals struct {
	app    *app
	store  *store
	landed chan struct{} // one has
	failed bool          // the last did not; all events of a held lock come from one goroutine at a time
}

func (a *app) newRenewals(s *store) *renewals {
	return &renewals{app: a, store: s, landed: make(chan struct{}, 1)}
}

// event is what to call for every event of the lock.
func (r *renewals) event(e leasehold.Event) {
	say := r.app.say
	r.app.libraryEvent(r.store, e)
	switch e.Kind {
	case leasehold.EventRenewed:
		if r.failed {
			say.text("renewed %s", printable(e.Key.String()))
		}
		r.failed = false
		select {
		case r.landed <- struct{}{}:
		default:
		}
	case leasehold.EventRenewError:
		if !r.failed {
			say.text("%s could not be renewed, %s of trust is left: still trying: %s",
				printable(e.Key.String()), age(e.Remaining), words(e.Err, r.store.table+" in "+r.store.location))
		}
		r.failed = true
	}
}
