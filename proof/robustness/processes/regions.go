//go:build linux

package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/localdynamo"
)

// regionNames are the Regions of a globalTable.
var regionNames = []string{"us-east-1", "us-east-2", "us-west-2"}

// agreement is the time that a simulated Region needs to agree with another Region on a
// write or on a strongly consistent read.
const agreement = 15 * time.Millisecond

// way is how a Region treats requests: it serves them, or fails in a certain way. A Region that
// fails is called dark.
type way string

// Values of way. A dark Region drops or refuses requests, or delays them. It applies a delayed
// request later, even if the client no longer waits for the reply.
const (
	serves      way = ""
	refused     way = "connections refused"
	noAddress   way = "no address"
	blackHole   way = "requests dropped"
	stopped     way = "requests delayed until the fault ends"
	serverError way = "500"
	unavailable way = "503"
	slow        way = "answers after 2 s"
	isolated    way = "writes and strong reads dropped"
	sluggish    way = "answers after 1.2 s" // answers slowly, but does not count as dark
)

// ways lists the values of type way with which a test makes a Region dark: all except serves and
// sluggish.
var ways = []way{refused, noAddress, blackHole, stopped, serverError, unavailable, slow, isolated}

// globalTable simulates a DynamoDB global table with multi-Region strong consistency in
// three Regions. All Regions use the tables of one localdynamo engine. If two Regions write an
// item at the same time, one of them rejects its write, as in DynamoDB.
type globalTable struct {
	t       testing.TB
	engine  *localdynamo.Engine
	direct  place // location of the engine's tables, without a Region in between
	names   *names
	regions []*region

	mu      sync.Mutex
	writing map[string]writer // by item: the Region that is writing the item now
}

// writer identifies the Region that is writing an item, and counts the write requests for the item
// that are in flight in this Region.
type writer struct {
	region   *region
	requests int
}

// region is one Region of a globalTable.
type region struct {
	*globalTable
	name    string
	network *network

	mu   sync.Mutex
	dark way
	over chan struct{} // closed when the Region stops failing in the current way
}

// newGlobalTable starts the simulated Regions of a global table. Their servers run until the test
// ends.
func newGlobalTable(t testing.TB) *globalTable {
	t.Helper()
	g := &globalTable{t: t, engine: localdynamo.New(), names: newNames(t), writing: map[string]writer{}}
	direct := httptest.NewServer(g.engine)
	t.Cleanup(direct.Close)
	g.direct = place{Endpoint: direct.URL}
	for _, name := range regionNames {
		r := &region{globalTable: g, name: name}
		front := httptest.NewServer(r)
		t.Cleanup(func() { r.set(serves); front.CloseClientConnections(); front.Close() })
		r.network = connect(t, name, front.URL)
		host, _, _ := strings.Cut(r.network.proxy.Listen, ":")
		g.names.set(r.host(), host)
		g.regions = append(g.regions, r)
	}
	return g
}

// host returns the DNS name of the Region's endpoint.
func (r *region) host() string { return "dynamodb." + r.name + ".test" }

// The method "from" returns the location of the tables for a process. The process's home Region has
// the index "home". The process can fail over to the given number of other Regions.
func (g *globalTable) from(home, others int) place {
	p := place{Names: g.names.address}
	for i := range 1 + others {
		r := g.regions[(home+i)%len(g.regions)]
		_, port, _ := strings.Cut(r.network.proxy.Listen, ":")
		p.Regions = append(p.Regions, site{r.name, "http://" + r.host() + ":" + port})
	}
	return p
}

// darken makes the Region fail in the given way, until lighten is called.
func (r *region) darken(w way) {
	r.set(w)
	if w == noAddress {
		r.names.set(r.host(), "")
	}
	if w == noAddress || w == refused {
		r.network.down()
	}
}

func (r *region) lighten() {
	switch r.set(serves) {
	case noAddress:
		host, _, _ := strings.Cut(r.network.proxy.Listen, ":")
		r.names.set(r.host(), host)
		r.network.up()
	case refused:
		r.network.up()
	}
}

// set sets the way in which the Region fails, and returns the previous way.
func (r *region) set(w way) way {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.dark
	if r.over != nil {
		close(r.over)
	}
	r.dark, r.over = w, make(chan struct{})
	return before
}

// request contains the parts of a DynamoDB request that a simulated Region reads.
type request struct {
	op             string
	writes, strong bool
	TableName      string
	Key            json.RawMessage
	ConsistentRead bool
	body           []byte
}

func read(r *http.Request) (request, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	q := request{op: op, body: body, writes: op == "UpdateItem" || op == "DeleteItem" || op == "PutItem"}
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	q.strong = q.writes || q.ConsistentRead || op == "BatchGetItem" && bytes.Contains(body, []byte(`"ConsistentRead":true`))
	return q, err
}

// ServeHTTP answers a request to the Region. If the Region is dark, the request fails or is
// delayed in the way that darken has set.
func (r *region) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q, err := read(req)
	if err != nil {
		panic(http.ErrAbortHandler) // the client disconnected while it sent its request
	}
	r.mu.Lock()
	dark, over := r.dark, r.over
	r.mu.Unlock()
	switch {
	case dark == blackHole, dark == isolated && q.strong:
		select {
		case <-over:
		case <-req.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case dark == stopped:
		<-over // wait until the fault ends; the Region then serves the request, even if the client has disconnected
	case dark == slow:
		wait(2 * time.Second)
	case dark == sluggish:
		wait(1200 * time.Millisecond)
	case dark == serverError:
		refuse(w, http.StatusInternalServerError, "InternalServerError")
		return
	case dark == unavailable:
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		return
	}
	r.serve(w, req, q)
}

// serve answers a request as a Region without a fault does.
func (r *region) serve(w http.ResponseWriter, req *http.Request, q request) {
	switch {
	case q.op == "DescribeTable":
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, r.described(q.TableName))
		return
	case strings.HasPrefix(q.op, "Transact"), q.op == "UpdateTimeToLive":
		refuse(w, http.StatusBadRequest, "ValidationException")
		return
	}
	if q.writes {
		item := q.TableName + string(q.Key)
		if !r.enter(item) {
			refuse(w, http.StatusBadRequest, "ReplicatedWriteConflictException")
			return
		}
		defer r.leave(item)
	}
	if q.strong {
		wait(agreement)
	}
	req.Body = io.NopCloser(bytes.NewReader(q.body))
	r.engine.ServeHTTP(w, req.WithContext(context.WithoutCancel(req.Context())))
}

// enter records that the Region begins to write an item. It returns false if another Region
// is writing the same item.
func (r *region) enter(item string) bool {
	g := r.globalTable
	g.mu.Lock()
	defer g.mu.Unlock()
	by := g.writing[item]
	if by.requests > 0 && by.region != r {
		return false
	}
	g.writing[item] = writer{r, by.requests + 1}
	return true
}

func (r *region) leave(item string) {
	g := r.globalTable
	g.mu.Lock()
	defer g.mu.Unlock()
	if by := g.writing[item]; by.requests > 1 {
		g.writing[item] = writer{r, by.requests - 1}
	} else {
		delete(g.writing, item)
	}
}

// described returns the Region's answer to DescribeTable.
func (r *region) described(table string) string {
	var replicas []string
	for _, name := range slices.DeleteFunc(slices.Clone(regionNames), func(name string) bool { return name == r.name }) {
		replicas = append(replicas, fmt.Sprintf(`{"RegionName":%q,"ReplicaStatus":"ACTIVE"}`, name))
	}
	return fmt.Sprintf(`{"Table":{"TableName":%q,"MultiRegionConsistency":"STRONG","Replicas":[%s]}}`, table, strings.Join(replicas, ","))
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"simulated by the test"}`, code)
}
