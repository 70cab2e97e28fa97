package inspect

import (
	"context"
	"fmt"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// getRaw prints what is stored under a key.
func (c *command) getRaw(ctx context.Context, t *store.Table, key leasehold.Key) error {
	item, err := t.Item(ctx, key)
	if err != nil {
		return err
	}
	raw, err := say.Item(item)
	if err != nil {
		return err
	}
	if c.Stdout.Terminal && !c.JSON {
		raw = say.Indented(raw)
	}
	_, err = fmt.Fprintln(c.Stdout, string(raw))
	return err
}
