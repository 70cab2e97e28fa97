package lab

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// Units contains read and write capacity units.
type Units struct{ Read, Write float64 }

// Meter counts the capacity that requests consume. A nil Meter does nothing.
type Meter struct {
	mu   sync.Mutex
	used Units
}

// ask changes the body of a request so that the reply will contain the consumed capacity.
func (m *Meter) ask(body []byte) []byte {
	if m == nil {
		return body
	}
	return append([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), body[1:]...)
}

func (m *Meter) count(op string, res *http.Response) {
	if m == nil || res == nil {
		return
	}
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	type capacity struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity capacity }
	// A reply to a transaction contains the capacity for each table.
	var perTable struct{ ConsumedCapacity []capacity }
	_, _ = json.Unmarshal(body, &one), json.Unmarshal(body, &perTable)
	used := one.ConsumedCapacity.CapacityUnits
	for _, c := range perTable.ConsumedCapacity {
		used += c.CapacityUnits
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Contains(body, []byte("#ConditionalCheckFailedException")) {
		// A write with a failed condition consumes as much as an applied write: one unit for an
		// item of up to 1 KB. The reply does not show this capacity.
		used = 1
	}
	if op == "GetItem" || op == "BatchGetItem" || op == "TransactGetItems" || op == "Query" || op == "Scan" {
		m.used.Read += used
	} else {
		m.used.Write += used
	}
}

// Reset returns the capacity that requests have consumed since the last Reset, and sets the
// counters to zero.
func (m *Meter) Reset() Units {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used
	m.used = Units{}
	return used
}
