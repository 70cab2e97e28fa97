package layout

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Native is leasehold's own layout: the awslabs Java client's attributes plus
// token, grant id, grant time and TTL. For a table that only leasehold writes.
type Native struct {
	PartitionKey string // default "key"
	SortKey      string // default none
	SortValue    string // sort key of a call that names none; default: such a call is an error
	TTL          string // default "expiresAt"; "-" for none
}

// Name returns "native".
func (Native) Name() string { return "native" }

// Capabilities says that the layout can do everything but slots.
func (n Native) Capabilities() Capabilities {
	return Capabilities{
		Expiry:                 Observed,
		EveryGrantFenced:       true,
		FencingSurvivesRelease: true,
		Data:                   true,
		Attributes:             true,
		KeepOnRelease:          true,
		DeleteOnRelease:        true,
		SortKey:                n.SortKey != "",
		TTL:                    n.TTL != "-",
		LeaseStep:              time.Millisecond,
	}
}

// Protocol is for package leasehold. The error lists the names that clash.
func (n Native) Protocol() (protocol.Protocol, error) {
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
	p.shares = true
	return native{p}, errors.Join(names.errs...)
}
