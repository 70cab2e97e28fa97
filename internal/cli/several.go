package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// severalFlags are the flags of run for more keys than one.
type severalFlags struct {
	keys   []string // besides KEY
	any    bool     // one of them is enough
	shared bool     // one lease for all
}

func (f *severalFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVarP(&f.keys, "key", "k", nil, "hold `KEY` too; may be repeated")
	fl.BoolVar(&f.any, "any", false, "hold only one of several keys: the first that is free")
	fl.BoolVar(&f.shared, "shared", false, "renew one lease for all keys, by one request; break takes longer to reach CMD")
}

// named returns the keys that the user has named, each once.
func (f *severalFlags) named(args []string) []string {
	var keys []string
	for _, key := range slices.Concat(args, f.keys) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// check refuses flags that do not go together. keys are those named.
func (f *severalFlags) check(cmd *cobra.Command, a *app, keys []string) error {
	counted := cmd.Flags().Changed("permits")
	broken := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, "\n") })
	switch {
	case slices.Contains(keys, ""):
		return usageOf(cmd, "KEY is empty")
	case broken >= 0 && len(keys) > 1 && !f.any:
		return usageOf(cmd, "KEY %s has a line break, and CMD is told of several keys one a line: hold it alone", wording.Name(keys[broken]))
	case counted && f.any:
		return usageOf(cmd, "-p and --any: use one of them")
	case counted && len(keys) > 1:
		return usageOf(cmd, "-p and several keys: use one of them")
	case f.shared && (f.any || len(keys) == 1):
		return usageOf(cmd, "--shared is for several keys (-k), whose lease it shares: leave it out")
	case !f.shared:
		return nil
	}
	l, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return err
	}
	if _, ok := proto.(protocol.Sharing); !ok {
		return usageOf(cmd, "--shared: layout %s has no shared leases: leave it out", l.Name())
	}
	return nil
}

// acquireSeveral acquires all of keys, or with --any one of them. holders
// collects who holds them; nil without --any.
func acquireSeveral(ctx context.Context, s *store.Store, locks *leasehold.Client, keys []leasehold.Key, f *acquireFlags, holders *permitHolders, opts []leasehold.AcquireOption) (hold, error) {
	if f.several.any {
		lock, err := locks.AcquireAny(ctx, keys, opts...)
		if err == nil {
			return hold{lock.Key().Partition, []*leasehold.Lock{lock}, nil}, nil
		}
		if errors.Is(err, leasehold.ErrHeld) {
			err = &allHeldError{holders.all(), err}
		}
		return hold{}, notLocks(s, err, f)
	}
	group, err := locks.AcquireAll(ctx, keys, opts...)
	if err != nil {
		return hold{}, notLocks(s, err, f)
	}
	return hold{keys[0].Partition, group.Locks(), group}, nil
}

// notLocks says what one of several keys is, if it is a semaphore's.
func notLocks(s *store.Store, err error, f *acquireFlags) error {
	var bad *leasehold.RecordError
	if n, is := permits.In(s.Layout, err); is && errors.As(err, &bad) {
		return notALock(bad.Key.Partition, n, f)
	}
	return err
}
