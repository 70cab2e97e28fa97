package records_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestThePermitsKeysLeadToTheRowOfTheirSemaphoreAndNoOtherKeyDoes(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		counting, ok := b.Protocol.(protocol.Counting)
		stored := ok && counting.PermitRows() != nil
		for _, n := range []int{0, 7, 10, protocol.MostPermits - 1} {
			if !ok {
				break
			}
			row, permit, ok := protocol.PermitOf(b.Protocol, counting.PermitKey("pool/gpu", n))
			if ok != stored || ok && (permit != n || row != counting.PermitRows().Key("pool/gpu")) {
				t.Errorf("permit %d is %d of %v: %v", n, permit, row, ok)
			}
		}
		for _, partition := range []string{"job", "", "/7", "pool/gpu", "pool/gpu/", "pool/gpu/07", "pool/gpu/+7", "pool/gpu/-1", "pool/gpu/7x", fmt.Sprint("pool/gpu/", protocol.MostPermits)} {
			if row, n, ok := protocol.PermitOf(b.Protocol, protocol.Key{Partition: partition}); ok {
				t.Errorf("%q is permit %d of %v", partition, n, row)
			}
		}
	})
}
