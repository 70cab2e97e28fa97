package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/semaphore"
)

// Forget is leasehold forget.
func Forget(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	var yes, done bool
	var sortKey string
	cmd := &cobra.Command{
		Use:   "forget KEY [flags]",
		Short: "Remove the record of a free key, to use the key as something else",
		Long: `Remove the record of KEY, which is free, so that KEY may become a lock, a
read/write lock or a semaphore, whatever it was before. Of a semaphore the
number of permits is removed, and all permits with it.

Asks at a terminal; elsewhere it needs --yes. Removes exactly what it has read.
Exit code 1, and nothing is removed: KEY or one of its permits is held (see
leasehold break), does not read, or has changed meanwhile; or there is no KEY.

Tokens start again from the clock: above all earlier ones, unless the clocks of
holders differ by more than the time since the last grant. Data and attributes
of yours are removed as well, and so is what was done last (run --every,
--once): the next run does it again.

Interrupted, it has removed all or nothing; only a semaphore of 100 permits may
be left with 99. Then type it again.

With --done it forgets only what was done last under KEY, held or free.`,
		Example: `  leasehold forget gpu
  leasehold forget gpu --yes && leasehold run -p 4 gpu -- ./train
  leasehold forget nightly-report --done              # run it again today`,
		ValidArgsFunction: c.AnyKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !c.CanAsk() {
				return misuse.Of(cmd, "forget asks at a terminal, and there is none: use --yes")
			}
			return c.OnTable(cmd, leasehold.Config{}, func(ctx context.Context, t *store.Table) error {
				key := store.KeyOf(t.Proto, args[0], sortKey)
				if done {
					return c.forgetDone(ctx, t, key, yes)
				}
				return c.forget(ctx, &forgetting{t: t, key: key}, yes)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&yes, "yes", "y", false, "do not ask")
	fl.BoolVar(&done, "done", false, "forget what was done last under KEY, and nothing else")
	fl.StringVar(&sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	return cmd
}

func (c *command) forget(ctx context.Context, f *forgetting, yes bool) error {
	if err := f.read(ctx); err != nil {
		return err
	}
	name := wording.Key(f.key)
	if f.carries {
		c.Say.Note("%s has data or attributes of yours, which are removed as well", name)
	}
	if f.done != nil {
		c.Say.Note("%s: %s: that is forgotten as well, and the next run does it again", name, f.done)
	}
	if !yes {
		_ = c.Stderr.Prose("%s is a %s, and free: %s. Tokens start again from the clock: above all earlier ones, unless clocks differ by more than the time since the last grant.",
			name, kindNames[f.found.Kind], wording.Count(f.stored(), "record", "records"))
		if err := c.Confirm(ctx, fmt.Sprintf("Forget %s, if nothing has changed? [y/N] ", name), "nothing was removed"); err != nil {
			return err
		}
	}
	n := f.stored()
	if err := f.remove(ctx); err != nil {
		return err
	}
	return c.Print(Forgotten{f.t.Table, f.key.Partition, f.key.Sort, string(f.found.Kind), n}, "forgot %s: %s removed\n", name, wording.Count(n, "record was", "records were"))
}

// Forgotten is what forget --json prints.
type Forgotten struct {
	Table   string `json:"table"`
	Key     string `json:"key"`
	SortKey string `json:"sortKey,omitempty"`
	Kind    string `json:"kind"`
	Removed int    `json:"removed"`
}

var kindNames = map[holders.Kind]string{
	holders.KindLock: "lock", holders.KindReadWrite: "read/write lock", holders.KindSemaphore: "semaphore",
}

// forgetting removes what is stored for a key that is free.
type forgetting struct {
	t   *store.Table
	key leasehold.Key

	row     protocol.Item   // as it was read
	found   holders.Found   // in row
	free    []freePermit    // of a semaphore, as many as there ever were
	carries bool            // data or attributes of the caller's
	done    *leasehold.Done // what row says was done last
}

// freePermit is a permit that nobody holds. item is nil if it has no record.
type freePermit struct {
	key  leasehold.Key
	item protocol.Item
}

// stored is how many records there are to remove.
func (f *forgetting) stored() int {
	n := 1
	for _, p := range f.free {
		if p.item != nil {
			n++
		}
	}
	return n
}

// read reads the key, and of a semaphore then its permits. It refuses what is not free.
func (f *forgetting) read(ctx context.Context) error {
	f.free, f.carries, f.done = nil, false, nil
	if f.t.IsSession(f.key) {
		return failure.Exit(failure.CodeNo, fmt.Errorf("%s is the row of a shared lease, and no key: nothing was removed", wording.Key(f.key)))
	}
	row, err := f.t.Item(ctx, f.key)
	if err != nil {
		return err
	}
	f.row, f.found = row, holders.Read(f.t.Proto, row)
	if f.found.Kind != holders.KindSemaphore {
		return f.isFree(ctx, f.key, f.found)
	}
	counting := f.t.Proto.(protocol.Counting) // else there is no such kind
	for i := range f.found.Permits.Most {
		key := leasehold.Key(counting.PermitKey(f.key.Partition, i))
		item, err := f.t.Item(ctx, key)
		if err == nil {
			err = f.isFree(ctx, key, holders.Read(f.t.Proto, item))
		} else if errors.Is(err, leasehold.ErrNotFound) { // never granted, or collected
			err = nil
		}
		if err != nil {
			return err
		}
		f.free = append(f.free, freePermit{key, item})
	}
	return nil
}

// isFree refuses an item that is held or does not read, and a read/write lock that a
// writer waits for.
func (f *forgetting) isFree(ctx context.Context, key leasehold.Key, found holders.Found) error {
	switch free := found.Free; {
	case free.Released && found.Intent != nil:
		return failure.Exit(failure.CodeNo, fmt.Errorf("%s is free, but %s waits to write: nothing was removed: forget it once that is granted, or has given up",
			wording.Key(key), wording.Owner(found.Intent.Owner)))
	case free.Released:
		f.carries = f.carries || len(free.Data) > 0 || len(free.Attributes) > 0
		if free.Done != nil {
			f.done = (*leasehold.Done)(free.Done)
		}
		return nil
	}
	r, err := holders.Get(ctx, f.t.Locks, key)
	switch {
	case errors.Is(err, leasehold.ErrRecord):
		return failure.Exit(failure.CodeNo, err)
	case errors.Is(err, leasehold.ErrNotFound), err == nil && r.Released:
		return f.changed(key)
	case err != nil:
		return err
	}
	return failure.Exit(failure.CodeNo, fmt.Errorf("%w: nothing was removed: forget %s once it is free",
		&leasehold.HeldError{Table: f.t.Table, Key: key, Holder: r}, wording.Key(f.key)))
}

func (f *forgetting) changed(key leasehold.Key) error {
	return fmt.Errorf("%w meanwhile: %s: %s was not removed: look again with leasehold get %s",
		leasehold.ErrChanged, wording.Key(key), wording.Key(f.key), wording.ShellKey(f.key))
}

// remove removes what was read, if it is still exactly that.
//
// A semaphore's number and its permits go in one transaction, because either order of
// several requests would break a promise. The number first: a permit may have been
// granted and compared with the number before; while its holder works, the key could be
// granted as a lock, or counted by another number. The permits first: a permit that was
// granted anew would outlive the number likewise. In the transaction no permit is held
// when the number goes. Whoever is granted a permit later reads the number after that,
// before it may use the permit, and finds none, another's, or a lock: it stores its own,
// follows, or gives the permit back.
//
// With 100 permits that is one item too many. So the last permit is first put out of
// reach: once a smaller number is stored, whoever is granted that permit gives it back.
// If it was free after that, it stays so for as long as the row is as it was read.
func (f *forgetting) remove(ctx context.Context) error {
	if f.found.Permits.N == attempts.MaxTransact {
		if err := f.shrink(ctx, attempts.MaxTransact-1); err != nil {
			return fmt.Errorf("%w; it may have %s now: to undo that, leasehold semaphore resize %s %d",
				err, wording.Count(attempts.MaxTransact-1, "permit", "permits"), wording.ShellWord(f.key.Partition), attempts.MaxTransact)
		}
	}
	if len(f.free) == attempts.MaxTransact {
		last := f.free[attempts.MaxTransact-1]
		f.free = f.free[:attempts.MaxTransact-1]
		if last.item != nil {
			if err := f.send(ctx, []leasehold.Key{last.key}, records.DeleteExactly(f.t.Proto, last.item)); err != nil {
				return err
			}
		}
	}
	keys, writes := []leasehold.Key{f.key}, []*protocol.Write{records.DeleteExactly(f.t.Proto, f.row)}
	for _, p := range f.free {
		w, err := records.IsAbsent(f.t.Proto, protocol.Key(p.key))
		if p.item != nil {
			w = records.DeleteExactly(f.t.Proto, p.item)
		}
		if err != nil {
			return err
		}
		keys, writes = append(keys, p.key), append(writes, w)
	}
	return f.send(ctx, keys, writes...)
}

// shrink stores a smaller number of permits, and reads again.
func (f *forgetting) shrink(ctx context.Context, n int) error {
	counted, err := semaphore.New(f.t.Locks, f.key.Partition, n)
	if err != nil {
		return err
	}
	if err := counted.Resize(ctx, n); err != nil {
		return err
	}
	if err := f.read(ctx); err != nil {
		return err
	}
	if f.found.Kind != holders.KindSemaphore || f.found.Permits.N > n {
		return f.changed(f.key)
	}
	return nil
}

// send sends writes that land together or not at all. keys are theirs.
func (f *forgetting) send(ctx context.Context, keys []leasehold.Key, writes ...*protocol.Write) error {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, w := range writes {
		in.TransactItems = append(in.TransactItems, w.TransactItem(f.t.Table))
	}
	_, err := f.t.DB.TransactWriteItems(ctx, in)
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		for i, reason := range cancelled.CancellationReasons {
			if i < len(keys) && reason.Code != nil && *reason.Code == "ConditionalCheckFailed" {
				return f.changed(keys[i])
			}
		}
	}
	return err
}
