// Package byname is for programs that acquire a lock by name and give the name again to
// unlock it. It implements certmagic.Locker, certmagic.TryLocker and
// certmagic.LockLeaseRenewer and, by ForDatabase, the lock.Locker and lock.SessionLocker of
// goose. It imports neither.
//
//	names, err := byname.New(locks, "certificates/")
//	...
//	err = names.Lock(ctx, "issue_example.com")
//	...
//	err = names.Unlock(ctx, "issue_example.com") // leasehold.ErrLost: it was not held to the end
//
// Such an interface cannot report that a lock was lost during the work. Held returns the
// lock itself: its context ends then, and its Commit and Guards fence writes. In your own
// code, use leasehold.Client.Do, which has all of that in one call.
package byname

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
)

// Locker holds locks by their names, for a client in any layout. It is safe for
// concurrent use.
type Locker struct {
	locks  *leasehold.Client
	prefix string

	mu   sync.Mutex // guards held; never held across I/O
	held map[string]*section
}

// section is the time between a granted Lock or TryLock and its Unlock. It lasts until
// Unlock even if the lock is lost earlier.
type section struct {
	lock *leasehold.Lock
	left chan struct{} // closed by Unlock
}

// New returns a Locker whose keys are prefix plus the name. It sends no request. Two
// Lockers with the same prefix exclude each other, in one process or in several. For a
// table with a sort key, the layout must name the sort key's value.
func New(locks *leasehold.Client, prefix string) (*Locker, error) {
	if locks == nil {
		return nil, errors.New("byname: the client is nil: pass what leasehold.New returned")
	}
	// This call checks only the arguments: Acquire sends nothing if its context has ended.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, prefix+"name"); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Locker{locks: locks, prefix: prefix, held: map[string]*section{}}, nil
}

// Lock waits until the lock with that name is granted or ctx ends, like
// leasehold.Client.Acquire, and returns its errors. The lock is then renewed until Unlock.
// Callers of one Locker are served in the order of their calls. If a caller loses its lock,
// the next caller still waits until the caller that lost the lock calls Unlock. So a
// section that has not noticed the loss never runs beside another section of its own
// process. It may run beside sections of other processes.
func (l *Locker) Lock(ctx context.Context, name string) error {
	for {
		// While the earlier section's lock is trusted, Lock waits in the client's local
		// queue, where that lock is handed over.
		if before := l.section(name); before != nil && before.lock.Err() != nil {
			if err := before.wait(ctx); err != nil {
				return err
			}
			continue
		}
		lock, err := l.locks.Acquire(ctx, l.prefix+name)
		if err != nil {
			return err
		}
		if l.enter(name, lock) {
			return nil
		}
		// The earlier section has lost its lock, but its caller has not called Unlock yet.
		// Release the lock that was just granted, so that other processes need not wait for
		// that Unlock.
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
}

// TryLock is Lock without waiting. It returns false without an error if this or another
// process holds the name. If the holder appears dead, TryLock observes it for its lease,
// and takes over, as with leasehold.NoWait.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	if l.section(name) != nil {
		return false, nil
	}
	lock, err := l.locks.TryAcquire(ctx, l.prefix+name)
	if held := (*leasehold.HeldError)(nil); errors.As(err, &held) && held.Err == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !l.enter(name, lock) {
		return false, lock.Release(ctx)
	}
	return true, nil
}

// wait waits until Unlock ends the section, or ctx ends.
func (s *section) wait(ctx context.Context) error {
	select {
	case <-s.left:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("byname: %v was lost, and has not been unlocked: %w", s.lock.Key(), context.Cause(ctx))
	}
}

// Unlock ends the section, and releases the lock. Call it once for each granted Lock and
// TryLock. ctx may have ended already: see leasehold.Lock.Release.
//
// It returns leasehold.ErrLost if the lock was lost during the section: other holders may
// have worked since. After any other error the lock becomes free when its lease expires.
func (l *Locker) Unlock(ctx context.Context, name string) error {
	l.mu.Lock()
	s := l.held[name]
	delete(l.held, name)
	l.mu.Unlock()
	if s == nil {
		return fmt.Errorf("byname: unlock %q: it is not locked here", l.prefix+name)
	}
	close(s.left)
	return s.lock.Release(ctx)
}

// RenewLockLease renews the lock now. It returns leasehold.ErrLost if the lock is no longer
// held. It ignores the duration, because locks are renewed in the background, so their
// lease need not be as long as the work. With a lease of that length, a dead holder would
// block the name for as long.
func (l *Locker) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s := l.section(name)
	if s == nil {
		return fmt.Errorf("byname: renew %q: it is not locked here", l.prefix+name)
	}
	return s.lock.Renew(ctx)
}

// Held returns the lock of a name between Lock and Unlock. Its context ends when the lock
// is lost. Its token and its Commit fence writes.
func (l *Locker) Held(name string) (*leasehold.Lock, bool) {
	s := l.section(name)
	if s == nil {
		return nil, false
	}
	return s.lock, true
}

func (l *Locker) section(name string) *section {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[name]
}

// enter begins a section. It returns false if the name already has one.
func (l *Locker) enter(name string, lock *leasehold.Lock) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return false
	}
	l.held[name] = &section{lock: lock, left: make(chan struct{})}
	return true
}
