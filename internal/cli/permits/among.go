package permits

import (
	"context"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Among returns which of the records are permits of a semaphore. A key such as
// gpu/0 is one if there is a semaphore under gpu: those are read, in one request at
// most. Nobody waits for that: if it cannot be known, a permit is listed as the lock that
// it is.
func Among(ctx context.Context, t *store.Table, all []leasehold.Record) map[leasehold.Key]*say.Permit {
	var ask []protocol.Key
	asked, may := map[protocol.Key]bool{}, map[leasehold.Key]*say.Permit{}
	for _, r := range all {
		row, n, ok := protocol.PermitOf(t.Proto, protocol.Key(r.Key))
		if !ok {
			continue
		}
		may[r.Key] = &say.Permit{Semaphore: row.Partition, Number: n}
		if !asked[row] {
			asked[row] = true
			ask = append(ask, row)
		}
	}
	if len(ask) == 0 || len(ask) > attempts.MaxBatchGet {
		return nil
	}
	reader := holders.NewReader(t.DB, t.Table, t.Proto)
	found, err := reader.ByKey(ctx, ask)
	if err != nil {
		return nil
	}
	rows := protocol.PermitRowsOf(t.Proto)
	for key := range may {
		row, _, _ := protocol.PermitOf(t.Proto, protocol.Key(key))
		if _, err := rows.Decode(found[row]); err != nil {
			delete(may, key)
		}
	}
	return may
}
