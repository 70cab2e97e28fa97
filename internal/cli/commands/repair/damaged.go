package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// breakDamaged removes a record that does not read as a lock, if it is still exactly
// what was shown or what was read from a file.
func (c *command) breakDamaged(ctx context.Context, t *store.Table, key leasehold.Key, f breakFlags) error {
	item, err := t.Item(ctx, key)
	if err != nil {
		return err
	}
	raw, err := say.Item(item)
	if err != nil {
		return err
	}
	found := holders.Read(t.Proto, item)
	if err := notDamaged(key, found.Kind); err != nil {
		return failure.Exit(failure.CodeNo, err)
	}
	if f.ifRaw != "" {
		looked, err := plainfile.ReadNamed(f.ifRaw)
		switch {
		case err != nil:
			return misuse.Errorf("--if-raw %s: %v", f.ifRaw, failure.WithoutPath(err))
		case !json.Valid(looked):
			return misuse.Errorf("--if-raw %s: the file does not hold what leasehold get --raw writes", f.ifRaw)
		case !say.SameItem(looked, raw):
			return changedRaw(key)
		}
	}
	if !f.yes {
		fmt.Fprintln(c.Stderr, string(say.Indented(raw)))
		_ = c.Stderr.Prose("It does not read as a lock: %s %s.", visible.Name(found.Damage.Attribute), found.Damage.Problem)
		if _, held := records.HeldBut(t.Proto, item, found.Damage.Attribute); held {
			_ = c.Stderr.Prose("Without that attribute it is a lock that somebody holds: rename the attribute instead.")
		}
		_ = c.Stderr.Prose("Whoever holds it is not told, and may work on until its next renewal. Tokens start again from the clock.")
		if err := c.Confirm(ctx, fmt.Sprintf("Remove the record of %s, if it is still as shown? [y/N] ", wording.Key(key)), "nothing was removed"); err != nil {
			return err
		}
	}
	_, err = t.DB.DeleteItem(ctx, records.DeleteExactly(t.Proto, item).DeleteItem(t.Table))
	var changed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &changed) && len(changed.Item) == 0:
		return t.NotFound(key)
	case errors.As(err, &changed):
		return changedRaw(key)
	case err != nil:
		return err
	}
	if c.JSON {
		_, err = fmt.Fprintln(c.Stdout, string(raw))
	} else {
		_, err = fmt.Fprintf(c.Stdout, "removed the record of %s\n", wording.Key(key))
	}
	return err
}

// notDamaged says why a record of this kind must not be removed: it reads as what it is.
func notDamaged(key leasehold.Key, kind holders.Kind) error {
	switch kind {
	case holders.KindDamaged:
		return nil
	case holders.KindSemaphore:
		return fmt.Errorf("%s is a semaphore, and nothing is damaged: once all of it is free leasehold forget %s removes it", wording.Key(key), wording.ShellKey(key))
	case holders.KindSession:
		return fmt.Errorf("%s is the row of a shared lease, and nothing is damaged", wording.Key(key))
	}
	return fmt.Errorf("the record of %s reads as a lock, and nothing is damaged: to free it use leasehold break %s", wording.Key(key), wording.ShellKey(key))
}

func changedRaw(key leasehold.Key) error {
	return fmt.Errorf("%w meanwhile: %s: nothing was removed: look again with leasehold get --raw %s",
		leasehold.ErrChanged, wording.Key(key), wording.ShellKey(key))
}
