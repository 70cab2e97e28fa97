package layout

import "time"

// AWSLabs is the layout of awslabs/amazon-dynamodb-lock-client 1.x (Java), whose processes
// may share the table. A grant of the Java client has no token, and may erase leasehold's
// token. The Java client writes whole items and, by default, deletes them on release. Each
// grant by leasehold removes the attribute expiresAt (the TTL of Native), whoever wrote it:
// TTL could delete a lock that is held.
type AWSLabs struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls that name none; default: such a call is an error

	// HoldThroughOutage keeps locks held past their lease while DynamoDB answers every
	// request with a 5xx or throttling, as withHoldLockOnServiceUnavailable does. The
	// price: another process may be granted the lock while this process still works under
	// it. This happens if only this process has the outage. It also happens if the other
	// process has watched the record since before the outage, and is the first to get
	// through after it. Commit stays safe. Default false.
	HoldThroughOutage bool
}

// Name returns "awslabs".
func (AWSLabs) Name() string { return "awslabs" }

// Capabilities returns what the layout supports in a shared table.
func (a AWSLabs) Capabilities() Capabilities { return javaCapabilities(a.SortKey) }

// javaCapabilities are the capabilities of the layouts with the Java client's
// attributes, in tables that other libraries write too.
func javaCapabilities(sortKey string) Capabilities {
	return Capabilities{
		Expiry:          Observed,
		Data:            true,
		Attributes:      true,
		KeepOnRelease:   true,
		DeleteOnRelease: true,
		SortKey:         sortKey != "",
		LeaseStep:       time.Millisecond,
	}
}

func (AWSLabs) sealed() {}
