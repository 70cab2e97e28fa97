package layout

import "time"

// AWSLabs is shared with awslabs/amazon-dynamodb-lock-client 1.x (Java). A Java
// client's grant carries no token, and may erase ours: it writes whole items,
// and deletes them by default on release. The attribute expiresAt, native's
// TTL, is removed by every grant of ours: it must not outlive a release.
type AWSLabs struct {
	PartitionKey string // default "key"
	SortKey      string // default none
	SortValue    string // sort key of a call that names none; default: such a call is an error
}

// Name returns "awslabs".
func (AWSLabs) Name() string { return "awslabs" }

// Capabilities says what grants and releases of either side leave.
func (a AWSLabs) Capabilities() Capabilities { return peerOfJava(a.SortKey) }

// peerOfJava are the capabilities of the layouts with the Java client's
// attributes that peers write too.
func peerOfJava(sortKey string) Capabilities {
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
