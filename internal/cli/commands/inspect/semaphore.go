package inspect

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/permits"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// showSemaphore writes how many permits there are, and their holders as ls lists
// them.
func (c *command) showSemaphore(ctx context.Context, t *store.Table, key string, n int, check bool, checkFor time.Duration) error {
	sem, err := permits.Read(ctx, t, key, n)
	if err != nil {
		return err
	}
	if check && sem.Taken > 0 {
		if err := c.checkSemaphore(ctx, t, &sem, checkFor); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(c.Stdout).Encode(sem)
	}
	out := c.Listing(t)
	out.Checked = check
	fields := [][2]string{{"key", visible.Name(key)}, {"kind", sem.Kind}, {"permits", strconv.Itoa(n)}, {"taken", strconv.Itoa(sem.Taken)}}
	if err := c.Stdout.Fields(fields, ""); err != nil {
		return err
	}
	return out.Write(c.Stdout, sem.Holders, c.Now())
}

// checkSemaphore observes the holders, and leaves out who has ended meanwhile.
func (c *command) checkSemaphore(ctx context.Context, t *store.Table, sem *permits.Semaphore, checkFor time.Duration) error {
	by := t.Observer(checkFor)
	held := make([]leasehold.Record, sem.Taken)
	for i, r := range sem.Holders {
		held[i] = r.Record
	}
	sem.Holders = sem.Holders[:0]
	err := c.Say.Check(ctx, by, false, held, func(o holders.Observation) error {
		sem.Holders = append(sem.Holders, say.Record{Table: t.Table, Record: o.Record, Holder: o.State})
		return nil
	})
	sem.Taken = len(sem.Holders)
	slices.SortFunc(sem.Holders, func(x, y say.Record) int { return holders.CompareKeys(x.Record.Key, y.Record.Key) })
	return err
}
