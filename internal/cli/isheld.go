package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold"
)

// getHeld answers by the exit code whether a key is held, with --check by a live
// holder. It prints nothing but what went wrong.
func (a *app) getHeld(ctx context.Context, s *store, locks *leasehold.Client, key leasehold.Key, f getFlags) error {
	no := exit(codeNo, nil)
	r, err := locks.Get(ctx, key.Partition, withSortKey(key)...)
	if _, is := permitsIn(s.layout, err); is {
		return usagef("%[1]s is a semaphore: ask for one of its permits: leasehold get %[1]s/N --held", printable(key.Partition))
	}
	switch {
	case errors.Is(err, leasehold.ErrNotFound):
		return no
	case err != nil:
		return cause(ctx, err)
	case r.Released:
		return no
	case !f.check:
		return nil
	}
	by, err := newObserver(s, locks)
	if err != nil {
		return err
	}
	by.limit = f.checkFor
	found, err := a.anyLive(ctx, by, []leasehold.Record{r})
	if err == nil && found != live {
		// A read/write lock may have other holders.
		var others []leasehold.Record
		for o, failed := range locks.List(ctx, leasehold.ListPartition(key.Partition)) {
			if failed == nil && o.Key == r.Key && !o.Released && grantOf(o) != grantOf(r) {
				others = append(others, o)
			}
		}
		var more liveness
		if more, err = a.anyLive(ctx, by, others); more != "" && more != dead {
			found = more
		}
	}
	switch {
	case err != nil:
		return err
	case found == live:
		return nil
	case found == unknown:
		return fmt.Errorf("whether the holder of %s is live is not known after %s: observe for longer with --for", printable(key.String()), shortDuration(f.checkFor))
	}
	return no
}

// anyLive observes records, and says live if any of their holders is, else unknown
// if any may be. Empty: none is held any more.
func (a *app) anyLive(ctx context.Context, by observer, records []leasehold.Record) (liveness, error) {
	observe := by.observe
	if a.say.rewrites() {
		observe = func(ctx context.Context, records []leasehold.Record) []observation {
			return a.observeWithProgress(ctx, by, records, "the holder")
		}
	}
	var sum liveness
	for _, o := range observe(ctx, records) {
		switch {
		case o.err != nil:
			return "", o.err
		case o.liveness == live:
			return live, nil
		case o.liveness == unknown || sum == "":
			sum = o.liveness
		}
	}
	return sum, nil
}
