package cli_test

import (
	"bytes"
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

	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// faulty is a server in front of an engine with the table locks.
type faulty struct {
	t      *testing.T
	engine *localdynamo.Engine
	db     *dynamodb.Client
	env    []string // environment of a command that uses the server
	url    string
}

// fault answers a request, or passes it to next.
type fault func(op string, w http.ResponseWriter, r *http.Request, next http.Handler)

// newFaulty starts a server whose requests pass through the fault.
func newFaulty(t *testing.T, spec table.Spec, fault fault) *faulty {
	t.Helper()
	engine := localdynamo.New()
	spec.Name = "locks"
	f := &faulty{t: t, engine: engine, db: engine.Client()}
	if err := table.Create(t.Context(), f.db, spec); err != nil {
		t.Fatal(err)
	}
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

// served starts a server that denies operations and has no other fault.
func served(t *testing.T, denied ...string) (db *dynamodb.Client, env []string) {
	t.Helper()
	f := newFaulty(t, table.Spec{}, denies(denied...))
	return f.db, f.env
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

// unavailable answers as a server that is down.
func unavailable(_ string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// while returns a fault that passes requests to f while on is true.
func while(on *atomic.Bool, f fault) fault {
	return func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if on.Load() {
			f(op, w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// denies returns a fault that denies the given operations as IAM does. IAM's error differs
// from the table's own errors.
func denies(denied ...string) fault {
	return func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if slices.Contains(denied, op) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:%s"}`, op)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// refuse answers with an error of DynamoDB.
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
