package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// faulty is an HTTP server that imitates DynamoDB with faults. A localdynamo engine with a
// table named locks answers the requests that no fault answers.
type faulty struct {
	t      *testing.T
	engine *localdynamo.Engine
	db     *dynamodb.Client
	env    []string // environment variables that make a command use the server
	url    string
}

// A fault is a function that answers a request for operation op, or passes it on to next.
type fault func(op string, w http.ResponseWriter, r *http.Request, next http.Handler)

// newFaulty starts a server that passes each request to the fault. The fault may pass the
// request on to the engine.
func newFaulty(t *testing.T, spec table.Spec, fault fault) *faulty {
	t.Helper()
	engine := localdynamo.New()
	spec.Name = "locks"
	f := &faulty{t: t, engine: engine, db: engine.Client()}
	lab.OK(t, table.Create(t.Context(), f.db, spec))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		fault(op, w, r, engine)
	}))
	t.Cleanup(func() {
		server.Close()
		_ = engine.Close()
	})
	f.url = server.URL
	f.env = append(bare(t.TempDir()), "LEASEHOLD_TABLE=locks", "AWS_REGION=eu-west-1", "AWS_ENDPOINT_URL_DYNAMODB="+f.url)
	return f
}

// noServer is an address without a listener. Its port is fixed. If the test took a free
// port and released it, the port could be assigned to another test's server.
const noServer = "http://127.0.0.1:1"

// served starts a server that denies the given operations and has no other fault. It
// returns a client of the server, and the environment of a command that uses the server.
func served(t *testing.T, denied ...string) (db *dynamodb.Client, env []string) {
	t.Helper()
	f := newFaulty(t, table.Spec{}, denies(denied...))
	return f.db, f.env
}

// putItem stores an item in the table named locks.
func putItem(t *testing.T, db *dynamodb.Client, item map[string]types.AttributeValue) {
	t.Helper()
	lab.Must(db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
}

// sharedLock returns a client of the table named locks, and a lock on the key job that the
// client holds under a shared lease.
func sharedLock(t *testing.T, db *dynamodb.Client) (*leasehold.Client, *leasehold.Lock) {
	t.Helper()
	locks := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks", SharedLease: true}))(t)
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks, lab.Must(locks.Acquire(t.Context(), "job"))(t)
}

// empty fails the test if the table has any record.
func (f *faulty) empty() {
	f.t.Helper()
	out, err := f.db.Scan(f.t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")})
	if err != nil || out.Count > 0 {
		f.t.Errorf("left in the table: %v, %v", out.Items, err)
	}
}

func healthy(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(w, r)
}

// unavailable is a fault that answers every request as DynamoDB answers while it is down
// (HTTP 503).
func unavailable(_ string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// when returns a fault that applies f to each request for which the function is returns
// true. The engine answers all other requests.
func when(is func(op string, r *http.Request) bool, f fault) fault {
	return func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if is(op, r) {
			f(op, w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// while returns a fault that applies f while on is true.
func while(on *atomic.Bool, f fault) fault {
	return when(func(string, *http.Request) bool { return on.Load() }, f)
}

// refusing returns a fault that answers every request with the DynamoDB error of the given
// code.
func refusing(code string) fault {
	return func(_ string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, code, "refused for a moment")
	}
}

// denies returns a fault that answers the given operations with IAM's
// AccessDeniedException. The prefix of this error type differs from the prefix of
// DynamoDB's own error types.
func denies(denied ...string) fault {
	return when(func(op string, _ *http.Request) bool { return slices.Contains(denied, op) },
		func(op string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:%s"}`, op)
		})
}

// refuse answers with HTTP status 400 and a DynamoDB error that has the given code and
// message.
func refuse(w http.ResponseWriter, code, message string) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code, message)
}

// bodyOf reads the body of a request and restores it for the next reader.
func bodyOf(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}
