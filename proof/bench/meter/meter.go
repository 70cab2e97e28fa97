package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Usage is a count of requests, and of the capacity units that these requests consumed.
type Usage struct {
	Requests      float64
	Writes, Reads float64 // consumed write and read capacity units
}

// Minus returns the usage between two readings of a meter: other is the earlier reading, u
// the later.
func (u Usage) Minus(other Usage) Usage {
	return Usage{u.Requests - other.Requests, u.Writes - other.Writes, u.Reads - other.Reads}
}

// Meter forwards requests to a server. It delays each request by half of the network delay, and
// each reply by the other half. Its methods are safe for concurrent use.
type Meter struct {
	Endpoint string // http://127.0.0.1:port

	behind    string
	distance  time.Duration
	transport *http.Transport
	server    *http.Server

	mu   sync.Mutex
	used Usage
}

// Start starts a meter in front of the server at endpoint. The argument distance is the network
// delay: the time by which the meter delays a request and its reply in total.
func Start(endpoint string, distance time.Duration) (*Meter, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Meter{
		Endpoint: "http://" + listener.Addr().String(), behind: endpoint, distance: distance,
		// The transport keeps up to 4096 idle connections, enough for all concurrent
		// requests, so that no request waits for a new connection.
		transport: &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true},
	}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	go func() { _ = m.server.Serve(listener) }() // Serve returns when Close is called; its error then does not matter
	return m, nil
}

// Close closes the meter and its clients' connections.
func (m *Meter) Close() error {
	err := m.server.Close()
	m.transport.CloseIdleConnections()
	return err
}

// Used returns the usage since the meter was started.
func (m *Meter) Used() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// ServeHTTP forwards one request to the server. It forwards a complete request even if its client
// disconnects, as a network would.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed while it sent the request
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	kind := kinds[operation]
	if kind != ofTable {
		body = askForUnits(body)
	}
	time.Sleep(m.distance / 2)
	ctx := context.WithoutCancel(r.Context())
	out, err := http.NewRequestWithContext(ctx, r.Method, m.behind+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	out.Header = r.Header.Clone()
	out.Header.Set("Accept-Encoding", "identity") // requests an uncompressed reply, because the meter reads the reply
	out.Host = r.Host
	res, err := m.transport.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	reply, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	m.count(kind, reply)
	time.Sleep(m.distance / 2)
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(reply) // the client may have disconnected
}

func (m *Meter) count(kind kind, reply []byte) {
	consumed := units(reply)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Requests++
	switch kind {
	case reads:
		m.used.Reads += consumed
	case writes:
		m.used.Writes += consumed
	}
}

// kind is the kind of capacity units that an operation consumes.
type kind int

const (
	ofTable kind = iota // an operation that consumes no units, such as DescribeTable
	reads
	writes
)

var kinds = map[string]kind{
	"GetItem": reads, "BatchGetItem": reads, "TransactGetItems": reads, "Query": reads, "Scan": reads,
	"PutItem": writes, "UpdateItem": writes, "DeleteItem": writes, "BatchWriteItem": writes, "TransactWriteItems": writes,
}

// askForUnits changes the body of a request so that the reply contains the consumed units.
func askForUnits(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("{")) || bytes.Contains(body, []byte(`"ReturnConsumedCapacity"`)) {
		return body
	}
	return append([]byte(`{"ReturnConsumedCapacity":"TOTAL",`), body[1:]...)
}

// units returns the capacity units that a reply reports. The reply to a write whose condition
// failed, or to a cancelled transaction, reports no units, although DynamoDB charges for these
// writes. For a failed condition, units returns 1, and for a transaction 2 for each of its writes.
func units(reply []byte) (consumed float64) {
	if bytes.Contains(reply, []byte("#ConditionalCheckFailedException")) {
		return 1
	}
	var cancelled struct{ CancellationReasons []struct{} }
	if json.Unmarshal(reply, &cancelled) == nil && len(cancelled.CancellationReasons) > 0 {
		return 2 * float64(len(cancelled.CancellationReasons))
	}
	type capacity struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity capacity }
	if json.Unmarshal(reply, &one) == nil {
		return one.ConsumedCapacity.CapacityUnits
	}
	var each struct{ ConsumedCapacity []capacity } // the reply to a batch or a transaction reports the capacity units of each table separately
	_ = json.Unmarshal(reply, &each)               // each stays empty if the reply reports no capacity units
	for _, c := range each.ConsumedCapacity {
		consumed += c.CapacityUnits
	}
	return consumed
}
