package holding

import (
	"context"
	"errors"
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
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/semaphore"
)

// User describes the user of a hold: the settings, the output and CMD's environment.
type User struct {
	Settings *store.Settings
	Environ  []string // environment for CMD, as KEY=VALUE
	Say      *say.Messages
	Now      func() time.Time
	Orphaned <-chan struct{} // channel that is closed when the process that started this one has ended; nil if this process is to continue after that
}

// Seeker acquires a hold once, or once for each term of an election.
type Seeker struct {
	user    User
	store   *store.Store
	wanted  Wanted
	signals *process.Signals
	locks   *leasehold.Client                     // client that is kept for the next terms; nil before the first term
	follow  atomic.Pointer[func(leasehold.Event)] // function that receives the events of locks
	seat    *election.Election                    // election that uses locks; nil unless leadership is wanted
	wait    *wait                                 // wait of the last term; nil before the first
	former  string                                // the grant of the last term; empty before the first
}

// Seek returns a Seeker. The Seeker catches signals until Close is called. A signal ends
// the wait for the hold, or is passed on to CMD.
func Seek(user User, s *store.Store, w Wanted) *Seeker {
	signals := process.CatchSignals()
	signals.Orphaned = user.Orphaned
	return &Seeker{user: user, store: s, wanted: w, signals: signals}
}

// Close releases the Seeker's resources, except those of returned holds.
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

// openLocks opens a lock client, unless the client of the previous term is still open. The
// client of the previous term recognizes records that the previous term left in the table.
func (s *Seeker) openLocks() (err error) {
	if s.locks != nil {
		return nil
	}
	s.locks, err = s.store.Client(leasehold.Config{
		Owner: s.wanted.Owner, Lease: s.wanted.Lease,
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

// Acquire acquires the hold, and reports the holder while it waits. A signal ends the wait.
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
	s.wait = newWait(s.user, s.wait, s.former)
	s.wait.start()
	began := time.Now()
	var h *Hold
	var err error
	waited := s.wanted.Wait > 0 && s.wanted.Waited >= s.wanted.Wait
	if !waited {
		h, err = s.ask(ctx, s.wanted)
	}
	if waited || s.wanted.wasTooShort(err) {
		s.closeLocks() // this ends the old client's requests, so they cannot interfere later
		trial := s.wanted
		trial.NoWait, trial.Wait = true, 0
		h, err = s.ask(ctx, trial)
		err = s.wanted.afterWait(err, time.Since(began))
	}
	s.wait.end()
	s.store.Trouble.Pause(true) // the wait has ended: from now on, failing renewals are reported instead of trouble with requests
	if err != nil {
		return nil, err
	}
	s.former = holders.GrantOf(h.Record())
	if n := s.wait.holdersSeen(); n > 0 && (!s.wanted.NoWait || time.Since(began) >= tryingAfter) {
		after := wording.Age(time.Since(began))
		if n > 1 {
			after += fmt.Sprintf(" and %d holders", n)
		}
		s.user.Say.Text("granted %s after %s, token %d", h, after, h.first().Token())
	}
	return h, nil
}

// ask tries to acquire the hold once. w limits the wait.
func (s *Seeker) ask(ctx context.Context, w Wanted) (*Hold, error) {
	if err := s.openLocks(); err != nil {
		return nil, err
	}
	var keys []leasehold.Key // the keys that the user has named
	for _, name := range w.Keys {
		keys = append(keys, s.store.Key(name, w.SortKey))
	}
	wait, all := s.wait, w.allHeld(keys) // kept in variables, as late events still belong to this wait
	wait.tries(w.NoWait)
	h := &Hold{seeker: s, renewals: newRenewals(s.user.Say, s.store.Where())}
	follow := func(e leasehold.Event) {
		wait.saw(e, all)
		switch {
		case e.Kind == leasehold.EventWaiting && w.Saw != nil:
			w.Saw(*e.Holder)
		case e.Kind != leasehold.EventWaiting && !w.Detached: // the later events of a detached hold are not reported, because its grant contains the same
			s.user.Say.ClientEvent(e, s.user.Now(), wait.holdersSeen())
			h.renewals.event(e)
		}
	}
	s.follow.Store(&follow)

	ctx, cancel := s.signals.Bind(ctx)
	defer cancel()
	if w.Wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, durations.Less(w.Wait, w.Waited), &failure.WaitedError{Wait: w.Wait})
		defer stop()
	}
	answers := s.store.Health.Answers()
	err := h.acquire(ctx, w, keys, all)
	if err == nil {
		return h, nil
	}
	err = afterSilence(err, s.store.Health.Answers()-answers, s.store.Table, keys[0])
	if cause := context.Cause(ctx); cause != nil && failure.Interrupted(cause) != nil {
		err = cause
	}
	return nil, err
}

// acquire acquires all of keys, one of them, or a permit.
func (h *Hold) acquire(ctx context.Context, w Wanted, keys []leasehold.Key, all *allHeld) error {
	locks, opts := h.seeker.locks, w.options()
	h.name = w.Keys[0]
	var lock *leasehold.Lock
	var err error
	switch {
	case w.Leads:
		lock, err = h.seeker.seat.Campaign(ctx, w.Value, opts...)
	case w.Permits > 0:
		var counted *semaphore.Semaphore
		if counted, err = semaphore.New(locks, h.name, w.Permits); err == nil {
			lock, err = counted.Acquire(ctx, opts...)
		}
	case len(w.Keys) == 1:
		lock, err = locks.Acquire(ctx, h.name, opts...)
	case w.Any:
		if lock, err = locks.AcquireAny(ctx, keys, opts...); err == nil {
			h.name = lock.Key().Partition
		}
	default:
		var group *leasehold.Group
		if group, err = locks.AcquireAll(ctx, keys, opts...); err == nil {
			h.locks, h.leased = group.Locks(), group
		}
	}
	if lock != nil {
		h.locks, h.leased = []*leasehold.Lock{lock}, lock
	}
	if all != nil && errors.Is(err, leasehold.ErrHeld) {
		err = &allHeldError{all.String(), err}
	}
	return err
}

// Wanted describes the requested hold. By default this is the lock of a key.
type Wanted struct {
	Keys    []string // names of the keys, at least one, without duplicates
	SortKey string   // sort key of each key; empty if the table has none
	Any     bool     // true if one of the keys suffices

	Permits int // number of permits of the key's semaphore: one is acquired; zero if the key is a lock

	Leads bool   // true if leadership under the key is wanted
	Value string // value of the leader, for observers

	NoWait   bool          // true if the command does not wait for a live holder; it still observes a holder that appears dead, for its lease
	Wait     time.Duration // limit for the wait; zero means no limit
	Waited   time.Duration // part of Wait that has passed while the store was opened
	Lease    time.Duration
	Owner    string                  // name of the owner; empty means the library's default
	Data     leasehold.RecordOption  // option that stores data in the record; nil if there is no data
	Once     leasehold.AcquireOption // option to do the work once for a label or in a period; nil if the work is done at each grant
	Detached bool                    // true if the grant is to remain after the command has ended
	Saw      func(leasehold.Record)  // called with each holder that Acquire waits for, with the record that was seen first; nil if not needed
}

// options returns the options of each acquisition.
func (w *Wanted) options() []leasehold.AcquireOption {
	opts := []leasehold.AcquireOption{leasehold.WithSortKey(w.SortKey)}
	if w.Detached {
		opts = append(opts, leasehold.WithoutRenewal())
	}
	if w.NoWait {
		opts = append(opts, leasehold.NoWait())
	}
	if w.Once != nil {
		opts = append(opts, w.Once)
	}
	if w.Data != nil {
		opts = append(opts, w.Data)
	}
	return opts
}
