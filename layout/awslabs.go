package layout

import "time"

// AWSLabs is the layout of awslabs/amazon-dynamodb-lock-client 1.x (Java). Java processes may share
// the table. The Java client creates no tokens. By default it writes whole items, and deletes them
// on release, which erases leasehold's token. Each grant by leasehold removes the attribute
// expiresAt, whichever client wrote it. Otherwise TTL could delete the record of a held lock:
// expiresAt is the TTL attribute of Native.
type AWSLabs struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; default: such a call is an error

	// HoldThroughOutage lets a process keep a lock after its lease has expired, while DynamoDB
	// answers every request with a 5xx or throttling error. Java's withHoldLockOnServiceUnavailable
	// does the same. The price: another process may be granted the lock while this process still
	// uses it. This can happen if the outage affects only this process. It can also happen as the
	// outage ends: another process, which has watched the record all along, may be the first whose
	// request succeeds. Writes by Lock.Commit stay safe. Default false.
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
