package cli

import "github.com/leasehold-go/leasehold"

// renewals follows the renewals of the lock that CMD runs under. It reports once
// that they fail, and once that they succeed again.
type renewals struct {
	app     *app
	store   *store
	wait    *waitReporter // of the wait for this lock
	renewed chan struct{} // sent to after each successful renewal
	failed  bool          // the last renewal failed; needs no mutex, as the library calls event from one goroutine at a time
}

func (a *app) newRenewals(s *store) *renewals {
	return &renewals{app: a, store: s, wait: s.wait, renewed: make(chan struct{}, 1)}
}

// event must be called for every event of the lock.
func (r *renewals) event(e leasehold.Event) {
	say := r.app.say
	r.app.clientEvent(r.store, e, r.wait.holdersSeen())
	switch e.Kind {
	case leasehold.EventRenewed:
		if r.failed {
			say.text("renewed %s", printable(e.Key.String()))
		}
		r.failed = false
		select {
		case r.renewed <- struct{}{}:
		default:
		}
	case leasehold.EventRenewError:
		if !r.failed {
			say.text("%s could not be renewed, trust ends in %s: still trying: %s",
				printable(e.Key.String()), age(e.Remaining), errorText(e.Err, r.store.table+" in "+r.store.location))
		}
		r.failed = true
	}
}
