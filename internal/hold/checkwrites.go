package hold

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// checkWrites refuses what can never be committed beside the guards of holds.
func (c *Client) checkWrites(holds []*Lock, writes []types.TransactWriteItem) error {
	rows := rowsOf(holds)
	switch most := attempts.MaxTransact - len(rows); {
	case most < 0:
		return c.Errorf("commit", holds[0].key, "%d guards alone: a transaction takes %d items: commit under fewer locks at once",
			len(rows), attempts.MaxTransact)
	case len(writes) > most:
		return c.Errorf("commit", holds[0].key, "%d writes: at most %d beside %s: split them, or write one item that refers to the rest",
			len(writes), most, nameGuards(len(holds), len(rows)))
	}
	for i, w := range writes {
		table, item, n := target(w)
		if n != 1 {
			return c.Errorf("commit", holds[0].key, "write %d has %d operations: give each exactly one of ConditionCheck, Put, Update and Delete",
				i, n)
		}
		for _, h := range holds {
			if h.isIn(table, item) {
				return c.Errorf("commit", h.key, "write %d is to the lock's own record: change that with Renew, or with options of CommitAndRelease",
					i)
			}
		}
		if s := sessionOf(holds); s != nil && s.isIn(table, item) {
			return c.Errorf("commit", holds[0].key, "write %d is to the row of this client's shared lease, which nobody else may write",
				i)
		}
	}
	return nil
}

// nameGuards says what guards there are of so many locks.
func nameGuards(locks, guards int) string {
	switch {
	case guards > locks:
		return fmt.Sprintf("%d guards, which are one for each lock and one for their shared lease", guards)
	case guards > 1:
		return fmt.Sprintf("%d guards", guards)
	}
	return "the guard"
}

// target returns the table of a write, the item or key it names and how many
// operations it has.
func target(w types.TransactWriteItem) (table *string, item protocol.Item, operations int) {
	if w.ConditionCheck != nil {
		table, item = w.ConditionCheck.TableName, w.ConditionCheck.Key
		operations++
	}
	if w.Put != nil {
		table, item = w.Put.TableName, w.Put.Item
		operations++
	}
	if w.Update != nil {
		table, item = w.Update.TableName, w.Update.Key
		operations++
	}
	if w.Delete != nil {
		table, item = w.Delete.TableName, w.Delete.Key
		operations++
	}
	return table, item, operations
}
