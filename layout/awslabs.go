package layout

import "time"

// AWSLabs is the layout of awslabs/amazon-dynamodb-lock-client 1.x (Java). Java processes
// may share the table. A grant of the Java client has no token, and may erase leasehold's
// token. The Java client writes whole items and, by default, deletes them on release. Each
// grant by leasehold also removes the attribute expiresAt (the TTL of Native), whichever
// client wrote it, because TTL could delete the record of a held lock.
type AWSLabs struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; default: such a call is an error

	// HoldThroughOutage keeps locks held past their lease while DynamoDB answers every request with
	// a 5xx or throttling. The Java client's option withHoldLockOnServiceUnavailable does the same.
	// The price: another process may be granted the lock while this process still works under it.
	// This can happen if the outage affects only this process. It can also happen if the other
	// process has watched the record since before the outage, and its request is the first to
	// succeed after the outage. Commit stays safe. Default false.
	HoldThroughOutage bool
}

// Name returns "awslabs".
func (AWSLabs) Name() string { return "awslabs" }

// Capabilities returns the features that this layout supports in a table that Java processes
// share.
func (a AWSLabs) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          Observed,
		Data:            true,
		Attributes:      true,
		KeepOnRelease:   true,
		DeleteOnRelease: true,
		SortKey:         a.SortKey != "",
		LeaseStep:       time.Millisecond,
	}
}

func (AWSLabs) sealed() {}
