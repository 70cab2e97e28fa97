package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
)

// getHeld answers by the exit code whether a key is held, with --check by a live
// holder. It prints nothing but what went wrong.
func (c *command) getHeld(ctx context.Context, t *store.Table, key leasehold.Key, f getFlags) error {
	no := failure.Exit(failure.CodeNo, nil)
	r, err := holders.Get(ctx, t.Locks, key)
	if _, is := permits.In(t.Proto, err); is {
		return misuse.Errorf("%s is a semaphore: ask for one of its permits: leasehold get %s --held", wording.Name(key.Partition), wording.ShellWord(key.Partition+"/N"))
	}
	switch {
	case errors.Is(err, leasehold.ErrNotFound):
		return no
	case err != nil:
		return err
	case r.Released:
		return no
	case !f.check:
		return nil
	}
	by := t.Observer(f.checkFor)
	found, err := c.anyLive(ctx, by, []leasehold.Record{r})
	if err == nil && found != holders.Live {
		// A read/write lock may have other holders.
		others, failed := holders.Others(ctx, t.Locks, r)
		if failed != nil {
			return failed
		}
		var more holders.State
		if more, err = c.anyLive(ctx, by, others); more != "" && more != holders.Dead {
			found = more
		}
	}
	switch {
	case err != nil:
		return err
	case found == holders.Live:
		return nil
	case found == holders.Unknown:
		return fmt.Errorf("whether the holder of %s is live is not known after %s: observe for longer with --for", wording.Key(key), wording.Duration(f.checkFor))
	}
	return no
}

// anyLive observes records, and says live if any of their holders is, else unknown
// if any may be. Empty: none is held any more.
func (c *command) anyLive(ctx context.Context, by holders.Observer, records []leasehold.Record) (holders.State, error) {
	observe := by.Observe
	if c.Say.Rewrites() {
		observe = func(ctx context.Context, records []leasehold.Record) []holders.Observation {
			return c.Say.Observe(ctx, by, records, "the holder")
		}
	}
	var sum holders.State
	for _, o := range observe(ctx, records) {
		switch {
		case o.Err != nil:
			return "", o.Err
		case o.State == holders.Live:
			return holders.Live, nil
		case o.State == holders.Unknown || sum == "":
			sum = o.State
		}
	}
	return sum, nil
}
