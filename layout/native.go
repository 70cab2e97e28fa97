package layout

import "time"

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

// Capabilities says that the layout can do everything.
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
