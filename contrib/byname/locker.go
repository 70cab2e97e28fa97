// Package byname is for programs that ask for a lock by its name, and give the name
// again to unlock it: certmagic.Locker, certmagic.TryLocker and
// certmagic.LockLeaseRenewer, and by ForDatabase the lock.Locker and
// lock.SessionLocker of goose. It needs none of them.
//
//	names, err := byname.New(locks, "certificates/")
//	...
//	err = names.Lock(ctx, "issue_example.com")
//	...
//	err = names.Unlock(ctx, "issue_example.com") // leasehold.ErrLost: it was not held to the end
//
// Such an interface cannot say that a lock was lost while the work went on. Held
// returns the lock itself, whose context ends then, and whose Commit and Guards
// fence what is written. Where the code is yours, leasehold.Client.Do has all that
// in one call.
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

// section is the work under one lock, from the grant to Unlock, whether or not the lock
// is lost meanwhile.
type section struct {
	lock *leasehold.Lock
	left chan struct{} // closed by Unlock
}

// New returns a Locker whose keys are prefix and the name. It sends nothing. Two Lockers
// with one prefix exclude each other, in one process as in two. In a table with a sort key
// the layout has to name its value.
func New(locks *leasehold.Client, prefix string) (*Locker, error) {
	if locks == nil {
		return nil, errors.New("byname: the client is nil: pass what leasehold.New returned")
	}
	// Arguments are checked before ctx: with one that has ended nothing is sent.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.Acquire(ended, prefix+"name"); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &Locker{locks: locks, prefix: prefix, held: map[string]*section{}}, nil
}

// Lock waits until the lock of that name is granted or ctx ends, as
// leasehold.Client.Acquire, whose errors it returns. From then on it is renewed until
// Unlock. Callers of one Locker are served in the order in which they came. If the lock
// of one of them is lost, the next waits for its Unlock all the same: a section that has
// not noticed works beside those of other processes, but not beside one of its own.
func (l *Locker) Lock(ctx context.Context, name string) error {
	for {
		// One that is trusted is waited for in the client's own line, where its grant is
		// handed over.
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
		// The one before was lost in the meantime, and has not been unlocked. Nobody in
		// another process has to wait for that.
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
}

// TryLock is Lock for who does not wait: false without an error means that the name is
// locked, here or elsewhere. A holder that appears dead is observed for its lease, and
// taken over, as by leasehold.NoWait.
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

// wait waits for the end of the section.
func (s *section) wait(ctx context.Context) error {
	select {
	case <-s.left:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("byname: %v was lost, and has not been unlocked: %w", s.lock.Key(), context.Cause(ctx))
	}
}

// Unlock ends the section, and frees the lock. It is called once for each Lock and each
// TryLock that was granted; ctx may have ended (leasehold.Lock.Release).
//
// leasehold.ErrLost means that the lock was lost before: others may have been at work
// since. After another error the lease frees the lock.
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

// RenewLockLease renews the lock now, and says whether it is still held:
// leasehold.ErrLost if not. Locks are renewed in the background, so no lease needs to be
// as long as the work, and the duration is not used: a holder that dies would block the
// name for as long.
func (l *Locker) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s := l.section(name)
	if s == nil {
		return fmt.Errorf("byname: renew %q: it is not locked here", l.prefix+name)
	}
	return s.lock.Renew(ctx)
}

// Held returns the lock of a name from Lock to Unlock: its context ends when it is lost,
// its token and its Commit fence what is written under it.
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

// enter begins a section, unless one is under way.
func (l *Locker) enter(name string, lock *leasehold.Lock) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return false
	}
	l.held[name] = &section{lock: lock, left: make(chan struct{})}
	return true
}
