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

// User contains the settings and the output of one run of leasehold, and the environment for
// CMD.
type User struct {
	Settings *store.Settings
	Environ  []string // environment for CMD, as KEY=VALUE
	Say      *say.Messages
	Now      func() time.Time
	Orphaned <-chan struct{} // closed when the parent process has ended; nil without --die-with-parent
}

// Seeker acquires the hold that Wanted describes. In an election, it does this again for
// each term.
type Seeker struct {
	user    User
	store   *store.Store
	wanted  Wanted
	Signals *process.Signals
	locks   *leasehold.Client                     // client that the terms of an election share; nil before the first term
	follow  atomic.Pointer[func(leasehold.Event)] // function that receives the events of the client locks; nil before the first attempt to acquire
	seat    *election.Election                    // election that uses the client locks; nil if Wanted.Leads is false
	wait    *wait                                 // wait for the current or previous term; nil before the first wait
	ends    time.Time                             // when the time of Wanted.Wait has passed
	former  string                                // identifies the grant (holders.GrantOf) of this process's previous term; empty before the first term
}

// Seek returns a Seeker that acquires w in the store s. Until Close is called, the Seeker
// catches signals. While the Seeker waits, a signal ends the wait. While CMD runs,
// leasehold forwards the signal to CMD.
func Seek(user User, s *store.Store, w Wanted) *Seeker {
	signals := process.CatchSignals()
	signals.Orphaned = user.Orphaned
	return &Seeker{user: user, store: s, wanted: w, Signals: signals, ends: time.Now().Add(durations.Less(w.Wait, w.Waited))}
}

// Close closes the lock client and stops catching signals. It does not release the locks of
// a Hold.
func (s *Seeker) Close() {
	s.closeLocks()
	s.Signals.Release()
}

func (s *Seeker) closeLocks() {
	if s.locks != nil {
		store.CloseLocks(s.locks)
		s.locks = nil
	}
}

// openLocks opens a lock client, unless the client of this process's previous term is still open.
// That client is used again, because it knows which record it wrote in the previous term.
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

// Acquire acquires what s.wanted describes. While it waits, it reports the holders of the
// keys. A signal ends the wait.
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
		s.closeLocks() // cancels the requests of the wait, so that they cannot interfere with the next attempt
		trial := s.wanted
		trial.NoWait, trial.Wait = true, 0
		h, err = s.ask(ctx, trial)
		err = s.wanted.afterWait(err, time.Since(began))
	}
	s.wait.end()
	// The wait has ended. From here on, leasehold reports renewals that fail, and no longer all
	// requests that fail.
	s.store.Trouble.Pause(true)
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

// Bind returns a copy of ctx that is cancelled when a signal arrives that would end this process and,
// unless the parameter "wait" is zero, when the time of Wanted.Wait has passed. The caller must call
// the returned function.
func (s *Seeker) Bind(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, unbind := s.Signals.Bind(ctx)
	if wait == 0 {
		return ctx, unbind
	}
	ctx, cancel := context.WithDeadlineCause(ctx, s.ends, &failure.WaitedError{Wait: wait})
	return ctx, func() { cancel(); unbind() }
}

// ask calls the library once to acquire what w describes. It waits as long as w allows.
func (s *Seeker) ask(ctx context.Context, w Wanted) (*Hold, error) {
	if err := s.openLocks(); err != nil {
		return nil, err
	}
	var keys []leasehold.Key // w.Keys, each with the sort key
	for _, name := range w.Keys {
		keys = append(keys, s.store.Key(name, w.SortKey))
	}
	wait, all := s.wait, w.allHeld(keys) // local variables, because an event of this wait may arrive during the next wait
	wait.tries(w.NoWait)
	h := &Hold{seeker: s, renewals: newRenewals(s.user.Say, s.store.Where())}
	follow := func(e leasehold.Event) {
		wait.saw(e, all)
		switch {
		case e.Kind == leasehold.EventWaiting && w.Saw != nil && holders.GrantOf(*e.Holder) != wait.former:
			w.Saw(*e.Holder)
		// Report events other than Waiting only if w.Detached is false. A detached command writes
		// its grant to a file or to standard output, and the grant contains the same information.
		case e.Kind != leasehold.EventWaiting && !w.Detached:
			s.user.Say.ClientEvent(e, s.user.Now(), wait.holdersSeen())
			h.renewals.event(e)
		}
	}
	s.follow.Store(&follow)

	ctx, cancel := s.Bind(ctx, w.Wait)
	defer cancel()
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

// acquire calls the function of the library that acquires what w describes, such as
// AcquireAll for several keys. It sets the locks of h.
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

// Wanted describes the requested hold. If Any, Permits and Leads are all unset, the hold is one
// lock on each of Keys.
type Wanted struct {
	Keys    []string // names of the keys; at least one, no duplicates
	SortKey string   // sort key of each key; empty if the table has none
	Any     bool     // if true, one of the keys is acquired, the first that is free

	Permits int // number of permits of the semaphore KEY (one is acquired); zero if KEY is not a semaphore

	Leads bool   // if true, leadership of the election KEY is acquired
	Value string // text that observers of the election see while this process leads

	NoWait   bool          // if true, do not wait for a live holder; a holder that appears dead is observed for its lease
	Wait     time.Duration // limit for the wait; zero means no limit
	Waited   time.Duration // part of Wait that opening the store has taken
	Lease    time.Duration
	Owner    string                  // owner name; empty means the default of package leasehold
	Data     leasehold.RecordOption  // option that stores the text of --data in the record; nil without --data
	Once     leasehold.AcquireOption // option for --once or --every; nil if neither is given
	Detached bool                    // if true, the lock stays held after the command has ended, as with "leasehold acquire"
	Saw      func(leasehold.Record)  // called with the record of each holder that Acquire waits for, except this process's previous term; may be nil
}

// options returns the options for the call of the library that acquires w.
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
