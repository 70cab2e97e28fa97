package layout

import "time"

// PythonDynamoDBLock is shared with python_dynamodb_lock 0.9 and its forks. A
// release deletes the record: a Python client would wait out the lease of one
// that was kept. With it go our token and the caller's attributes.
type PythonDynamoDBLock struct {
	PartitionKey string // default "lock_key"
	SortKey      string // default "sort_key"
	SortValue    string // default "-"
	TTL          string // default "expiry_time"
}

// Name returns "python-dynamodb-lock".
func (PythonDynamoDBLock) Name() string { return "python-dynamodb-lock" }

// Capabilities says that records carry attributes but no data, and go with
// their release.
func (PythonDynamoDBLock) Capabilities() Capabilities {
	return Capabilities{
		Expiry:          Observed,
		Attributes:      true,
		DeleteOnRelease: true,
		SortKey:         true,
		TTL:             true,
		LeaseStep:       time.Second,
	}
}

func (PythonDynamoDBLock) sealed() {}
