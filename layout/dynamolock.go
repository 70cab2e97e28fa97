package layout

// Dynamolock is the layout of cirello.io/dynamolock v2 and v5 (Go), whose processes may
// share the table. It is AWSLabs with leases written as Go durations. A grant of dynamolock
// keeps leasehold's token in the record without using the token. A dynamolock client that
// deletes on release erases it. As in AWSLabs, each grant by leasehold removes the
// attribute expiresAt, whoever wrote it.
type Dynamolock struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls that name none; dynamolock has one sort key for each client
}

// Name returns "dynamolock".
func (Dynamolock) Name() string { return "dynamolock" }

// Capabilities returns what the layout supports in a shared table.
func (d Dynamolock) Capabilities() Capabilities { return javaCapabilities(d.SortKey) }

func (Dynamolock) sealed() {}
