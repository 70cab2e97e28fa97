package requests

import (
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Usage is what requests that were answered have used.
type Usage struct {
	Requests  int
	Throttled int     // of the requests
	Writes    float64 // capacity units
	Reads     float64
}

// Plus adds what others have used.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Requests + v.Requests, u.Throttled + v.Throttled, u.Writes + v.Writes, u.Reads + v.Reads}
}

// Minus is what was used since v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Requests - v.Requests, u.Throttled - v.Throttled, u.Writes - v.Writes, u.Reads - v.Reads}
}

// Meter counts the requests of a DynamoDB client, and what they used. It is safe for
// concurrent use.
type Meter struct {
	mu   sync.Mutex
	used Usage
}

// Metered returns the client with its requests counted.
func Metered(db *dynamodb.Client) (*dynamodb.Client, *Meter) {
	m := &Meter{}
	return dynamodb.New(db.Options(), Watch{Units: true, Each: m.count}.Client), m
}

func (m *Meter) count(r Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = m.used.Plus(usedBy(r))
}

// usedBy returns what one request used, as its reply says. The server may not say it.
func usedBy(r Request) Usage {
	var failed *types.ConditionalCheckFailedException
	switch {
	case r.Code == 0:
		return Usage{}
	case r.Throttled():
		return Usage{Requests: 1, Throttled: 1}
	case errors.As(r.Err, &failed):
		return Usage{Requests: 1, Writes: 1} // charged like one that was applied, though the reply does not say so
	case r.Units == nil:
		return Usage{Requests: 1}
	}
	switch r.Operation {
	case "GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan":
		return Usage{Requests: 1, Reads: *r.Units}
	}
	return Usage{Requests: 1, Writes: *r.Units}
}

// Used returns what was used so far.
func (m *Meter) Used() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
