package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/pace"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/semaphore"
)

// checkPermits checks the value of -p.
func checkPermits(cmd *cobra.Command, f *acquireFlags) error {
	f.counted = cmd.Flags().Changed("permits")
	switch {
	case f.permits < 1 || f.permits > protocol.MostPermits:
		return usageOf(cmd, "-p %d: use 1 to %d permits", f.permits, protocol.MostPermits)
	case f.permits > 1 && f.sortKey != "":
		return usageOf(cmd, "--sort-key and -p: use one of them: permits cannot have a sort key")
	}
	return nil
}

// wantedKeys returns the keys that are to be acquired: those of the locks; or
// those of all permits, of which one is.
func wantedKeys(s *store.Store, locks *leasehold.Client, names []string, f *acquireFlags) ([]leasehold.Key, error) {
	if f.permits <= 1 {
		var keys []leasehold.Key
		for _, name := range names {
			keys = append(keys, store.CompleteKey(s.Layout, leasehold.Key{Partition: name, Sort: f.sortKey}))
		}
		return keys, nil
	}
	counted, err := semaphore.New(locks, names[0], f.permits)
	if err != nil {
		return nil, err
	}
	return counted.Keys(), nil
}

// acquireLockOrPermit acquires what the flags say: the lock of key, one of its
// permits, or what f.acquire acquires.
func acquireLockOrPermit(ctx context.Context, s *store.Store, locks *leasehold.Client, key string, f *acquireFlags, holders *permitHolders, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	if f.acquire != nil || f.permits <= 1 {
		lock, err := f.acquireLock(ctx, s, locks, key, opts)
		n, is := permits.In(s.Layout, err)
		switch {
		case !is:
			return lock, err
		case !f.counted:
			return nil, notALock(key, n, f)
		} // it may have been resized to one
	}
	counted, err := semaphore.New(locks, key, f.permits)
	if err != nil {
		return nil, err
	}
	lock, err := counted.Acquire(ctx, opts...)
	var differs *leasehold.PermitsError
	switch {
	case errors.As(err, &differs):
		err = misuse.Errorf("%s has %s, but -p says %d: use -p %d, as its other users do, or change it for all: leasehold semaphore resize %s %[3]d",
			wording.Name(key), permits.Count(differs.Stored), differs.Asked, differs.Stored, wording.ShellWord(key))
	case errors.Is(err, leasehold.ErrHeld) && holders != nil:
		err = &allHeldError{holders.all(), err}
	}
	if r, is := permits.LockIn(s.Layout, err); is {
		err = misuse.Errorf("%s is a lock that is %s, not a semaphore: use another key for -p, or once it is free start over with leasehold forget %s",
			wording.Name(key), permits.HeldNow(r), wording.ShellKey(r.Key))
	}
	return lock, err
}

func (f *acquireFlags) acquireLock(ctx context.Context, s *store.Store, locks *leasehold.Client, key string, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	if f.acquire != nil {
		return f.acquire(ctx, locks, key, opts...)
	}
	if s.File != "" {
		turn, leave := takeTurn(s.File, key)
		defer leave()
		ctx = pace.With(ctx, turn)
	}
	return locks.Acquire(ctx, key, opts...)
}

// notALock says what the key of n permits is to those who take it for a lock.
func notALock(key string, n int, f *acquireFlags) error {
	what := fmt.Sprintf("%s is a semaphore with %s, not a lock: ", wording.Name(key), permits.Count(n))
	if f.detached {
		return misuse.Errorf("%sleasehold run -p %d takes one of them", what, n)
	}
	return misuse.Errorf("%suse -p %d to take one of them, or another key, or once all are free start over with leasehold forget %s", what, n, wording.ShellWord(key))
}

// permitHolders collects the holders of a key's permits, or of several keys, that
// were seen during a wait. It is safe for concurrent use.
type permitHolders struct {
	held  string // says that all are held
	keys  []leasehold.Key
	mu    sync.Mutex
	owner map[leasehold.Key]string
}

func newPermitHolders(held string, keys []leasehold.Key) *permitHolders {
	return &permitHolders{held: held, keys: keys, owner: map[leasehold.Key]string{}}
}

// add adds a holder.
func (p *permitHolders) add(r leasehold.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner[r.Key] = wording.Owner(r.Owner)
}

// complete reports whether each of them was seen held.
func (p *permitHolders) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.owner) >= len(p.keys)
}

// all says who holds them, in the order of their keys.
func (p *permitHolders) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var owners []string
	for _, key := range p.keys {
		if owner, ok := p.owner[key]; ok {
			owners = append(owners, owner)
		}
	}
	if len(owners) == 0 {
		return p.held
	}
	return p.held + ", by " + wording.FirstNames(owners)
}

// allHeldError says that no permit was granted.
type allHeldError struct {
	text string // names the holders
	err  error
}

func (e *allHeldError) Error() string {
	var waited *failure.WaitedError
	if errors.As(e.err, &waited) {
		return e.text + ": " + waited.Error()
	}
	return e.text
}

func (e *allHeldError) Unwrap() error { return e.err }
