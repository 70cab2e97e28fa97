package layout

import "time"

// Native is leasehold's own layout, for a table to which only leasehold writes. It has the
// attributes of the awslabs Java client, and also a token, a grant id, the time of the
// grant, and a TTL.
type Native struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; default: such a call is an error
	TTL          string // attribute name; default "expiresAt"; "-" for no TTL
}

// Name returns "native".
func (Native) Name() string { return "native" }

// Capabilities returns the features that this layout supports: all of them.
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

func (Native) sealed() {}
