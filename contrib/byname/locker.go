// Package byname is for programs that acquire a lock by name and give the name again to
// unlock it. Its type Locker implements certmagic.Locker, certmagic.TryLocker and
// certmagic.LockLeaseRenewer. ForDatabase returns a lock that implements the interfaces
// lock.Locker and lock.SessionLocker of goose. The package imports neither certmagic nor
// goose.
//
//	names, err := byname.New(locks, "certificates/")
//	...
//	err = names.Lock(ctx, "issue_example.com")
//	...
//
//	err = names.Unlock(ctx, "issue_example.com") // leasehold.ErrLost: the lock was lost
//
// The interfaces of certmagic and goose cannot report that a lock was lost during the work. To
// notice a loss, call Locker.Held. It returns the leasehold.Lock, whose context ends at the loss,
// and whose methods Commit and Guards fence writes. In your own code, use leasehold.Client.Do: one
// call acquires the lock, passes its context to a function, and releases the lock.
package byname

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
)

// Locker acquires locks by name and keeps them until they are unlocked by name. Its client
// may use any layout. Locker is safe for concurrent use.
type Locker struct {
	locks  *leasehold.Client
	prefix string

	mu   sync.Mutex // guards the map "held"; not locked during a request
	held map[string]*section
}

// section is a critical section: the time between a granted Lock or TryLock and its Unlock.
// It lasts until Unlock even if the lock is lost earlier.
type section struct {
	lock *leasehold.Lock
	left chan struct{} // closed by Unlock
}

// New returns a Locker whose keys are prefix plus the lock's name. It sends no request. Lockers
// with the same table and prefix share locks, in one process or several. If the table has a sort
// key, set the field SortValue of the client's layout.
func New(locks *leasehold.Client, prefix string) (*Locker, error) {
	if locks == nil {
		return nil, errors.New("byname: the client is nil: pass what leasehold.New returned")
	}
	// This call of Acquire only checks whether the client can acquire keys with this prefix.
	// The context of the call has already ended, so Acquire sends no request.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, prefix+"name"); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Locker{locks: locks, prefix: prefix, held: map[string]*section{}}, nil
}

// Lock waits until the lock with that name is granted or ctx ends. It returns the errors of
// leasehold.Client.Acquire. After the grant, the lock is renewed until Unlock. Callers of one
// Locker are served in the order of their calls. If a caller loses its lock, the next caller
// still waits until the caller that lost the lock calls Unlock. So two callers of one Locker
// never work under the same name at the same time, even after a loss. A caller in another
// process may work under the name as soon as the lock is lost.
func (l *Locker) Lock(ctx context.Context, name string) error {
	for {
		// If the earlier section has lost its lock, wait until its caller calls Unlock. If the section
		// still has its lock, Acquire below waits in the client's local queue, and Unlock hands the lock
		// over to this call.
		if before := l.section(name); before != nil && before.lock.Err() != nil && !before.isClosed() {
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
		// An earlier section lost its lock during the wait, and its caller has not called Unlock
		// yet. So this call releases the lock that it was just granted. Other processes can then
		// acquire the lock without waiting for that caller.
		_ = lock.Release(ctx) // after an error, the lock is lost or the client repeats the release
	}
}

// TryLock is like Lock, but returns false and no error if a live process (this or another) holds
// the lock. If the holder appears dead, TryLock observes it for the length of its lease, and takes
// over if the holder does not renew: see leasehold.NoWait.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	if s := l.section(name); s != nil && !s.isClosed() {
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
		_ = lock.Release(ctx) // as in Lock
		return false, nil
	}
	return true, nil
}

// isClosed reports whether the section lost its lock because the client was closed. The next caller
// then does not wait for Unlock: its Acquire returns ErrClosed at once.
func (s *section) isClosed() bool { return errors.Is(s.lock.Err(), leasehold.ErrClosed) }

// wait waits until Unlock ends the section, or ctx ends.
func (s *section) wait(ctx context.Context) error {
	select {
	case <-s.left:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("byname: %v was lost, and has not been unlocked: %w", s.lock.Key(), attempts.Cause(ctx))
	}
}

// Unlock releases the lock, and ends the critical section that Lock or TryLock began. Call it once
// for each granted Lock and TryLock. Unlock also releases the lock if ctx has already ended: see
// leasehold.Lock.Release.
//
// It returns leasehold.ErrLost if the lock was lost before Unlock: other holders may have
// worked since the loss. After any other error the lock becomes free when its lease
// expires.
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

// RenewLockLease renews the lock now, or returns leasehold.ErrLost if it was lost. It ignores the
// duration, because certmagic passes the duration of a whole attempt to obtain a certificate. The
// client renews a shorter lease in the background, so a dead holder blocks the name for less time.
func (l *Locker) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s := l.section(name)
	if s == nil {
		return fmt.Errorf("byname: renew %q: it is not locked here", l.prefix+name)
	}
	return s.lock.Renew(ctx)
}

// Held returns the lock that this Locker holds under a name, between Lock and Unlock. The
// lock's context ends when the lock is lost. The lock's token and its method Commit fence
// writes.
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

// enter begins a section with the granted lock. It returns false if an earlier section
// under this name has not been unlocked.
func (l *Locker) enter(name string, lock *leasehold.Lock) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return false
	}
	l.held[name] = &section{lock: lock, left: make(chan struct{})}
	return true
}
