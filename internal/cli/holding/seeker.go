package holding

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// User is who wants something held: where that is said, and what CMD inherits.
type User struct {
	Settings *store.Settings
	Environ  []string // KEY=VALUE, for CMD
	Say      *say.Messages
	Now      func() time.Time
}

// Seeker acquires what is wanted: once, or term after term.
type Seeker struct {
	user    User
	store   *store.Store
	wanted  Wanted
	signals *process.Signals
	locks   *leasehold.Client                     // stays for the next terms; nil: none yet
	follow  atomic.Pointer[func(leasehold.Event)] // is told of the events of locks
	seat    *election.Election                    // on locks; nil: no leadership is wanted
	wait    *wait                                 // of the last term; nil: none yet
	saw     func(holder leasehold.Record)         // is told who holds what is waited for; nil: nobody is
}

// Seek catches signals, which from now on end the wait or are for CMD, until Close is
// called.
func Seek(user User, s *store.Store, w Wanted) *Seeker {
	return &Seeker{user: user, store: s, wanted: w, signals: process.CatchSignals()}
}

// TellHolders has fn told who holds what is waited for, from the next Acquire on: each once,
// as seen first.
func (s *Seeker) TellHolders(fn func(holder leasehold.Record)) { s.saw = fn }

// Close lets go of what Acquire has not given away.
func (s *Seeker) Close() {
	s.closeLocks()
	s.signals.Release()
}

func (s *Seeker) closeLocks() {
	if s.locks != nil {
		store.CloseLocks(s.locks)
		s.locks = nil
	}
}

// openLocks opens a lock client, unless that of the term before is open: it knows what
// that term has left in the table for its own.
func (s *Seeker) openLocks() (err error) {
	if s.locks != nil {
		return nil
	}
	s.locks, err = s.store.Client(leasehold.Config{
		Owner: s.wanted.Owner, Lease: s.wanted.Lease, SharedLease: s.wanted.Shared, Line: s.wanted.InLine,
		OnEvent: func(_ context.Context, e leasehold.Event) {
			if follow := s.follow.Load(); follow != nil {
				(*follow)(e)
			}
		},
	})
	if err == nil && s.wanted.Leads {
		s.seat, err = election.New(s.locks, s.wanted.Keys[0])
	}
	return err
}

// Acquire acquires what is wanted, and says who holds it while it waits. A signal ends
// the wait.
func (s *Seeker) Acquire(ctx context.Context) (*Hold, error) {
	if err := s.openLocks(); err != nil {
		return nil, err
	}
	if s.wait == nil {
		if err := s.refuseNested(ctx); err != nil {
			return nil, err
		}
	} else {
		s.store.Trouble.Pause(false)
	}
	s.wait = newWait(s.user, s.wait)
	s.wait.start()
	began := time.Now()
	h, err := s.ask(ctx, s.wanted)
	if s.wanted.wasTooShort(err) {
		s.closeLocks() // what they have sent is over, and in nobody's way
		h, err = s.ask(ctx, s.wanted.withoutWait())
		err = s.wanted.afterWait(err, time.Since(began))
	}
	s.wait.end()
	s.store.Trouble.Pause(true) // from now on failing renewals are reported instead
	if err != nil {
		return nil, err
	}
	if n := s.wait.holdersSeen(); n > 0 && (!s.wanted.NoWait || time.Since(began) >= tryingAfter) {
		after := wording.Age(time.Since(began))
		if n > 1 {
			after += fmt.Sprintf(" and %d holders", n)
		}
		s.user.Say.Text("granted %s after %s, token %d", h, after, h.first().Token())
	}
	return h, nil
}

// ask asks for what is wanted once, and for as long as w says.
func (s *Seeker) ask(ctx context.Context, w Wanted) (*Hold, error) {
	if err := s.openLocks(); err != nil {
		return nil, err
	}
	keys, err := w.keys(s.store, s.locks)
	if err != nil {
		return nil, err
	}
	wait, all := s.wait, w.allHeld(keys) // late events still belong to this wait
	wait.tries(w.NoWait)
	h := &Hold{seeker: s, renewals: newRenewals(s.user.Say, s.store.Where(), w.Shared)}
	follow := func(e leasehold.Event) {
		if e.Kind == leasehold.EventWaiting && s.saw != nil {
			s.saw(*e.Holder)
		}
		due := e.Kind != leasehold.EventWaiting || wait.noteHolder(*e.Holder, e.Place, all)
		wait.putOff(nil) // a newer one, or what ends the wait, takes its place
		switch {
		case !due:
			wait.putOff(func(holdersSeen int) { s.user.Say.ClientEvent(e, s.user.Now(), holdersSeen) })
			return
		case e.Kind != leasehold.EventWaiting && w.Detached: // the grant says the rest
			return
		}
		s.user.Say.ClientEvent(e, s.user.Now(), wait.holdersSeen())
		h.renewals.event(e)
	}
	s.follow.Store(&follow)

	ctx, cancel := s.signals.Bind(ctx)
	defer cancel()
	if w.Wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.Wait, &failure.WaitedError{Wait: w.Wait})
		defer stop()
	}
	answers := s.store.Health.Answers()
	if err = h.acquire(ctx, w, keys, all); err == nil {
		return h, nil
	}
	err = afterSilence(err, s.store.Health.Answers()-answers, s.store.Table, keys[0])
	if cause := context.Cause(ctx); cause != nil && failure.Interrupted(cause) != nil {
		err = cause
	}
	return nil, err
}
