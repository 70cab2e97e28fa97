package records

import (
	"cmp"
	"errors"
	"slices"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// newNative returns the protocol of layout Native. The methods in lock.go and versioned.go
// build its writes.
func newNative(n layout.Native) (protocol.Protocol, error) {
	ttl := cmp.Or(n.TTL, attrExpiresAt)
	if ttl == "-" {
		ttl = ""
	}
	p, names := javaLike(n.Name(), n.PartitionKey, n.SortKey, n.SortValue, leaseMillis)
	p.TTL = ttl
	names.claim("TTL attribute", ttl)
	if ttl != "" && !slices.Contains(p.removed, ttl) {
		p.removed = append(p.removed, ttl)
	}
	p.shares, p.handsOver = true, true
	p.own = append(p.own, oursInNative...)
	return native{lock{p}, p}, errors.Join(names.errs...)
}
