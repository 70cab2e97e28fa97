package requests

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Log turns each request into one line of the output of --verbose. It is safe for
// concurrent use.
type Log struct {
	schema protocol.Schema

	mu         sync.Mutex
	unanswered map[string]int // consecutive unanswered requests, by operation and keys
}

// NewLog returns a Log for requests to a table with the key attributes in schema.
func NewLog(schema protocol.Schema) *Log { return &Log{schema: schema, unanswered: map[string]int{}} }

// Entry is one request as --verbose prints it.
type Entry struct {
	Request
	Keys    []leasehold.Key // keys of the items in the request
	Attempt int
	Outcome string // "ok", an error code, or the reason why there is no reply
}

// Entry returns the Entry for the request r, which has ended. Its field Attempt counts the requests
// for the same operation and keys since the last answered request. Retries of package leasehold and
// of the SDK count as requests.
func (l *Log) Entry(r Request, from Server) Entry {
	e := Entry{Request: r, Keys: l.keysOf(r.Input), Outcome: visible.Message(r.outcome(from))}
	l.mu.Lock()
	defer l.mu.Unlock()
	id := fmt.Sprintf("%s %q", e.Operation, e.Keys)
	e.Attempt = l.unanswered[id] + 1
	if l.unanswered[id] = e.Attempt; e.answered() {
		delete(l.unanswered, id)
	}
	return e
}

// Line returns the request as one line of text.
func (e Entry) Line() string {
	what := e.Operation
	if len(e.Keys) > 0 {
		what += " " + wording.List(e.Keys)
	}
	line := fmt.Sprintf("%s: %s in %v, attempt %d", what, e.Outcome, e.Took.Round(10*time.Microsecond), e.Attempt)
	if e.Units != nil {
		line += ", capacity units " + strconv.FormatFloat(*e.Units, 'f', -1, 64)
	}
	if e.ID != "" {
		line += ", request " + visible.Word(e.ID)
	}
	return line
}

// keysOf returns the keys of the items in input, the input of an SDK operation.
func (l *Log) keysOf(input any) []leasehold.Key {
	var keys []leasehold.Key
	about := func(item protocol.Item) { keys = append(keys, l.schema.KeyOf(item)) }
	switch in := input.(type) {
	case *dynamodb.UpdateItemInput:
		about(in.Key)
	case *dynamodb.DeleteItemInput:
		about(in.Key)
	case *dynamodb.GetItemInput:
		about(in.Key)
	case *dynamodb.BatchGetItemInput:
		for _, of := range in.RequestItems {
			for _, key := range of.Keys {
				about(key)
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, write := range in.TransactItems {
			switch {
			case write.Update != nil:
				about(write.Update.Key)
			case write.Delete != nil:
				about(write.Delete.Key)
			case write.Put != nil:
				about(write.Put.Item)
			case write.ConditionCheck != nil:
				about(write.ConditionCheck.Key)
			}
		}
	}
	return keys
}

// Metered returns a copy of db that counts its requests. It also returns a function that
// reports how many requests have got a reply, and how many read units these requests
// consumed.
func Metered(db *dynamodb.Client) (*dynamodb.Client, func() (requests int, reads float64)) {
	var mu sync.Mutex
	var requests int
	var reads float64
	count := func(r Request) {
		if r.Code == 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		requests++
		switch r.Operation {
		case "GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan":
			reads += aws.ToFloat64(r.Units) // zero if the server does not report consumed capacity
		}
	}
	return dynamodb.New(db.Options(), Watch{Units: true, Each: count}.Client), func() (int, float64) {
		mu.Lock()
		defer mu.Unlock()
		return requests, reads
	}
}
