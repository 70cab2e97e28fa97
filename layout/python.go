package layout

import "time"

// PythonDynamoDBLock is the layout of python_dynamodb_lock 0.9 and its forks. Processes of these
// libraries may share the table. A release deletes the record, and with it leasehold's token and
// the caller's attributes. A kept record would make Python clients wait until its lease expires.
type PythonDynamoDBLock struct {
	PartitionKey string // attribute name; default "lock_key"
	SortKey      string // attribute name; default "sort_key"
	SortValue    string // sort key for calls without WithSortKey; default "-"
	TTL          string // attribute name; default "expiry_time"
}

// Name returns "python-dynamodb-lock".
func (PythonDynamoDBLock) Name() string { return "python-dynamodb-lock" }

// Capabilities returns the features that this layout supports. Records have attributes, but
// no data, and a release deletes the record.
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
