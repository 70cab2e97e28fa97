package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

// eventRequest is a request, with -v.
const eventRequest = "request"

// requestLog writes what -v shows of every request. It is safe for concurrent
// use.
type requestLog struct {
	say    *messages
	now    func() time.Time
	schema protocol.Schema

	mu         sync.Mutex
	unanswered map[string]int // how many requests of an operation on these keys in a row
}

func (a *app) newRequestLog(s *store.Store) *requestLog {
	l := &requestLog{say: a.say, now: a.Now, unanswered: map[string]int{}}
	if proto, err := records.Of(s.Layout); err == nil { // else its lock client reports it
		l.schema = proto.Schema()
	}
	return l
}

// request is what is known of a request when it has ended.
type request struct {
	operation string
	keys      []leasehold.Key
	took      time.Duration
	outcome   string // ok, an error code, or why there is no reply
	answered  bool
	id        string // DynamoDB's
	units     *float64
}

// log writes one request.
func (l *requestLog) log(r request) {
	attempt := l.attempt(r)
	e := newEvent(eventRequest, l.now())
	e.Operation, e.Attempt, e.RequestID, e.Units, e.TookMs, e.Outcome = r.operation, attempt, r.id, r.units, millis(r.took), r.outcome
	switch len(r.keys) {
	case 0:
	case 1:
		e.Key, e.SortKey = r.keys[0].Partition, r.keys[0].Sort
	default:
		for _, k := range r.keys {
			e.Keys = append(e.Keys, keyJSON{k.Partition, k.Sort})
		}
	}
	what := r.operation
	if len(r.keys) > 0 {
		what += " " + wording.FirstNames(wording.EachKey(r.keys))
	}
	line := fmt.Sprintf("%s: %s in %v, attempt %d", what, r.outcome, r.took.Round(10*time.Microsecond), attempt)
	if r.units != nil {
		line += ", capacity units " + strconv.FormatFloat(*r.units, 'f', -1, 64)
	}
	if r.id != "" {
		line += ", request " + printable(r.id)
	}
	l.say.tell(e, "%s", line)
}

// attempt counts the requests of an operation on the same keys, from the last
// that was answered. Both the library and the SDK repeat requests.
func (l *requestLog) attempt(r request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := fmt.Sprintf("%s %q", r.operation, r.keys)
	n := l.unanswered[id] + 1
	if l.unanswered[id] = n; r.answered {
		delete(l.unanswered, id)
	}
	return n
}

// keysOf returns the keys that the input of an operation is about.
func (l *requestLog) keysOf(input any) []leasehold.Key {
	var keys []leasehold.Key
	about := func(item protocol.Item) { keys = append(keys, leasehold.Key(l.schema.KeyOf(item))) }
	switch in := input.(type) {
	case *dynamodb.UpdateItemInput:
		about(in.Key)
	case *dynamodb.DeleteItemInput:
		about(in.Key)
	case *dynamodb.PutItemInput:
		about(in.Item)
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

// consumed returns the capacity units that a reply says were consumed, nil for
// none, and leaves the reply to be read again.
func consumed(r *http.Response) *float64 {
	b, _ := peek(r, math.MaxInt64) // an error comes again when the reply is read
	type capacity struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity *capacity }
	var perTable struct{ ConsumedCapacity []capacity } // of a batch or transaction
	switch {
	case json.Unmarshal(b, &one) == nil && one.ConsumedCapacity != nil:
		return &one.ConsumedCapacity.CapacityUnits
	case json.Unmarshal(b, &perTable) == nil && len(perTable.ConsumedCapacity) > 0:
		sum := 0.0
		for _, c := range perTable.ConsumedCapacity {
			sum += c.CapacityUnits
		}
		return &sum
	}
	return nil
}
