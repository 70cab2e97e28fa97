package layout

// Dynamolock is the layout of cirello.io/dynamolock v2 and v5 (Go). Processes of that
// library may share the table. The layout is AWSLabs, but leases are stored as Go durations.
// A grant of dynamolock keeps leasehold's token in the record without using the token. A
// dynamolock client that deletes on release erases the token. As in AWSLabs, each grant by
// leasehold removes the attribute expiresAt, whichever client wrote it.
type Dynamolock struct {
	PartitionKey string // attribute name; default "key"
	SortKey      string // name of the table's sort key attribute; default: no sort key
	SortValue    string // sort key for calls without WithSortKey; dynamolock has one sort key for each client
}

// Name returns "dynamolock".
func (Dynamolock) Name() string { return "dynamolock" }

// Capabilities returns the features that this layout supports in a table that dynamolock
// processes share. AWSLabs supports the same features.
func (d Dynamolock) Capabilities() Capabilities { return AWSLabs{SortKey: d.SortKey}.Capabilities() }

func (Dynamolock) sealed() {}
