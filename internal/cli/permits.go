package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/recipe"
	"github.com/leasehold-go/leasehold/semaphore"
)

// checkPermits says what is wrong with -p.
func checkPermits(cmd *cobra.Command, f *acquireFlags) error {
	switch {
	case f.permits < 1 || f.permits > protocol.MostPermits:
		return usageOf(cmd, "-p %d: from 1 to %d may hold KEY at a time", f.permits, protocol.MostPermits)
	case f.permits > 1 && f.sortKey != "":
		return usageOf(cmd, "--sort-key and -p: use one of them: the permits of KEY have no sort key of their own")
	}
	return nil
}

// wantedKeys are the keys of which one is to be had: that of the lock, or of all
// permits.
func wantedKeys(s *store, locks *leasehold.Client, key string, f *acquireFlags) ([]leasehold.Key, error) {
	if f.permits <= 1 {
		return []leasehold.Key{completeKey(s.layout, leasehold.Key{Partition: key, Sort: f.sortKey})}, nil
	}
	permits, err := recipe.Of(locks).PermitKeys(key, f.permits)
	keys := make([]leasehold.Key, len(permits))
	for i, k := range permits {
		keys[i] = leasehold.Key(k)
	}
	return keys, err
}

// take asks for what the flags say: the lock of key, one of its permits, or
// something of the command's own.
func take(ctx context.Context, locks *leasehold.Client, key string, f *acquireFlags, met *permitHolders, opts []leasehold.AcquireOption) (*leasehold.Lock, error) {
	switch {
	case f.ask != nil:
		return f.ask(ctx, locks, key, opts...)
	case f.permits <= 1:
		return locks.Acquire(ctx, key, opts...)
	}
	permits, err := semaphore.New(locks, key, f.permits)
	if err != nil {
		return nil, err
	}
	lock, err := permits.Acquire(ctx, opts...)
	switch {
	case errors.Is(err, semaphore.ErrPermits):
		if stored, read := recipe.Of(locks).ReadPermits(ctx, key); read == nil && stored.N > 0 {
			err = usagef("%s has %d permits, and -p asks for %d: use -p %d, as the others do", printable(key), stored.N, f.permits, stored.N)
		}
	case errors.Is(err, leasehold.ErrHeld):
		err = &allHeldError{met.all(), err}
	}
	return lock, err
}

// permitHolders are those who have been met in the place of whom a permit is
// wanted. It is safe for concurrent use.
type permitHolders struct {
	key   string
	keys  []leasehold.Key
	mu    sync.Mutex
	owner map[leasehold.Key]string
}

func newPermitHolders(key string, keys []leasehold.Key) *permitHolders {
	return &permitHolders{key: key, keys: keys, owner: map[leasehold.Key]string{}}
}

// meet enters a holder.
func (p *permitHolders) meet(r leasehold.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner[r.Key] = shortOwner(r.Owner)
}

// complete reports whether every permit was seen held.
func (p *permitHolders) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.owner) >= len(p.keys)
}

// named is how many holders are named.
const named = 5

// all says who has the permits, in order of their numbers.
func (p *permitHolders) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var owners []string
	for _, key := range p.keys {
		if owner, ok := p.owner[key]; ok {
			owners = append(owners, owner)
		}
	}
	text := fmt.Sprintf("all %d permits of %s are held", len(p.keys), printable(p.key))
	if more := len(owners) - named; more > 0 {
		owners = append(slices.Clip(owners[:named]), fmt.Sprintf("and %d more", more))
	}
	if len(owners) > 0 {
		text += ", by " + strings.Join(owners, ", ")
	}
	return text
}

// allHeldError is a permit that was not granted.
type allHeldError struct {
	text string // who has them
	err  error
}

func (e *allHeldError) Error() string {
	var waited *waitedError
	if errors.As(e.err, &waited) {
		return e.text + ": " + waited.Error()
	}
	return e.text
}

func (e *allHeldError) Unwrap() error { return e.err }
