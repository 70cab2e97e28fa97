package layout

// Dynamolock is shared with cirello.io/dynamolock v2 and v5 (Go). It is AWSLabs
// with leases as Go durations. A dynamolock client's grant carries our token
// forward without making it its own, and a client that deletes on release
// erases it.
type Dynamolock struct {
	PartitionKey string // default "key"
	SortKey      string // default none
	SortValue    string // dynamolock has one per client
}

// Name returns "dynamolock".
func (Dynamolock) Name() string { return "dynamolock" }

// Capabilities says what grants and releases of either side leave.
func (d Dynamolock) Capabilities() Capabilities { return peerOfJava(d.SortKey) }

func (Dynamolock) sealed() {}
