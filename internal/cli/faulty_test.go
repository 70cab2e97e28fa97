package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// faulty is an HTTP server that imitates a faulty DynamoDB. It passes each request to a
// function of type fault. That function answers the request itself, or passes it on to a
// localdynamo engine, which has a table named "locks".
type faulty struct {
	t      *testing.T
	engine *localdynamo.Engine
	db     *dynamodb.Client
	env    []string // environment variables that make a command use the server
	url    string
}

// A fault is a function that answers a request for operation op, or passes it on to next.
type fault func(op string, w http.ResponseWriter, r *http.Request, next http.Handler)

// newFaulty starts a faulty server with the given fault.
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

// noServer is the URL of a port on which no server listens. The port is fixed. If a test reserved a
// free port and released the port again, the server of another test could get the same port.
const noServer = "http://127.0.0.1:1"

// served starts a server that denies the given operations and has no other fault. It
// returns a client of the server, and the environment of a command that uses the server.
func served(t *testing.T, denied ...string) (db *dynamodb.Client, env []string) {
	t.Helper()
	f := newFaulty(t, table.Spec{}, denies(denied...))
	return f.db, f.env
}

// putItem stores an item in the table named "locks".
func putItem(t *testing.T, db *dynamodb.Client, item map[string]types.AttributeValue) {
	t.Helper()
	lab.Must(db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: item}))(t)
}

// sharedLock returns a client of the table named "locks", and a lock on the key "job" that
// the client holds under a shared lease.
func sharedLock(t *testing.T, db *dynamodb.Client) (*leasehold.Client, *leasehold.Lock) {
	t.Helper()
	locks := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks", SharedLease: true}))(t)
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks, lab.Must(locks.Acquire(t.Context(), "job"))(t)
}

// empty checks that the table contains no record.
func (f *faulty) empty() {
	f.t.Helper()
	items := lab.Must(f.db.Scan(f.t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")}))(f.t).Items
	lab.Want(f.t, fmt.Sprint("items left in the table: ", items), len(items), 0)
}

func healthy(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(w, r)
}

// unavailable is a fault that answers every request as DynamoDB does during an outage (HTTP 503).
func unavailable(_ string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// faultIf returns a fault that applies f to each request for which the function "condition" returns
// true. The engine answers all other requests.
func faultIf(condition func(op string, r *http.Request) bool, f fault) fault {
	return func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if condition(op, r) {
			f(op, w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// faultWhile returns a fault that applies f to each request that arrives while the flag
// isOn is true.
func faultWhile(isOn *atomic.Bool, f fault) fault {
	return faultIf(func(string, *http.Request) bool { return isOn.Load() }, f)
}

// refusing returns a fault that answers every request with the DynamoDB error of the given code.
func refusing(code string) fault {
	return func(_ string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, code, "refused for a moment")
	}
}

// denies returns a fault that answers the given operations with the AccessDeniedException of IAM.
// IAM's error types begin with com.amazon.coral.service. DynamoDB's own error types begin with the
// prefix that the function "refuse" writes.
func denies(denied ...string) fault {
	return faultIf(func(op string, _ *http.Request) bool { return slices.Contains(denied, op) },
		func(op string, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:%s"}`, op)
		})
}

// refuse answers with HTTP status 400 and a DynamoDB error that has the given code and message.
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

// liar is a server that passes the first requests to a localdynamo engine, and answers all
// later requests with a hostile reply.
type liar struct {
	engine http.Handler

	mu    sync.Mutex
	lie   http.HandlerFunc // writes the hostile reply; nil if the engine answers all requests
	after int              // number of requests that the engine still answers before the first hostile reply
}

// The method "says" makes the engine answer the next requests, up to the given number. The function
// "lie" answers all later requests. If "lie" is nil, the engine answers all requests.
func (l *liar) says(lie http.HandlerFunc, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie, l.after = lie, number
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	answer := l.lie
	if l.after > 0 {
		l.after--
		answer = nil
	}
	l.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	l.engine.ServeHTTP(w, r)
}

// refusals returns error replies after which a client does not retry its request. Together, they
// contain the given text wherever free text can be: in the error type, the message and some
// headers.
func refusals(text string) []http.HandlerFunc {
	refuse := func(of map[string]any, headers ...string) http.HandlerFunc {
		body, err := json.Marshal(of)
		if err != nil {
			panic(err)
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			for _, name := range headers {
				w.Header().Set(name, text)
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(body)
		}
	}
	const of = "com.amazonaws.dynamodb.v20120810#"
	return []http.HandlerFunc{
		refuse(map[string]any{"__type": of + "AccessDeniedException", "message": text}),
		refuse(map[string]any{"__type": of + text, "message": text}),
		refuse(map[string]any{"__type": text, "Message": text}),
		refuse(map[string]any{"__type": of + "AccessDeniedException", "message": text}, "X-Amzn-Requestid", "Server", "Date", "X-Amzn-Errortype"),
		refuse(map[string]any{"__type": of + "ValidationException", "message": "schema " + text}),
		refuse(map[string]any{"__type": of + "ResourceNotFoundException", "message": text}),
		refuse(map[string]any{"__type": of + "AccessDeniedException", "message": "KMS " + text}),
		refuse(map[string]any{"__type": of + "UnrecognizedClientException", "message": text}),
	}
}

// lies returns replies that a malicious server, or a server other than DynamoDB, might
// send. The given text is in each part of a reply that a client may print.
func lies(text string) map[string]http.HandlerFunc {
	const dynamoDBs = "application/x-amz-json-1.0"
	write := func(contentType string, body func(op string) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body(op))
		}
	}
	always := func(body string) func(string) string { return func(string) string { return body } }
	quoted, _ := json.Marshal(text)
	row := fmt.Sprintf(`{"key":{"S":"k"},"ownerName":{"S":%s},"fencingToken":{"N":"1e200000000"},"leaseDuration":{"S":"1e200000000"}}`, quoted)
	var mu sync.Mutex
	pages := 0
	return map[string]http.HandlerFunc{
		"HTML page":                    write("text/html; "+strings.ReplaceAll(text, "\n", " "), always("<html>"+text)),
		"HTML page of DynamoDB's type": write(dynamoDBs, always("<html>"+text)),
		"other JSON":                   write(dynamoDBs, always(fmt.Sprintf(`{"name":%s}`, quoted))),
		"empty body":                   write(dynamoDBs, always("")),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/"+strings.ReplaceAll(text, "\n", " "))
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a trickle": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", dynamoDBs)
			second := time.NewTicker(time.Second)
			defer second.Stop()
			for {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-second.C:
				case <-r.Context().Done():
					return
				}
			}
		},
		"a huge number": write(dynamoDBs, func(op string) string {
			switch op {
			case "BatchGetItem":
				return `{"Responses":{"native":[` + row + `]},"UnprocessedKeys":{}}`
			case "TransactGetItems":
				return `{"Responses":[{"Item":` + row + `}]}`
			}
			return `{"Item":` + row + `,"Attributes":` + row + `,"Items":[` + row + `],"Count":1,"ScannedCount":1}`
		}),
		"pages in a circle": write(dynamoDBs, func(string) string {
			mu.Lock()
			defer mu.Unlock()
			pages++
			return fmt.Sprintf(`{"Items":[],"Count":0,"ScannedCount":0,"LastEvaluatedKey":{"key":{"S":"%d"}}}`, pages%2)
		}),
	}
}

// fetch is the main function of a program that replaces curl. The program prints the body
// of the response from a URL, and fails if the status is not 200.
func fetch() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, resp.Status, err)
		os.Exit(1)
	}
}

var filtered = regexp.MustCompile(`\.(\w+)`)

// fields is the main function of a program that replaces jq -r. The program fails unless
// its input is a sequence of JSON objects. It also fails if the jq filter names a field
// that none of these objects has.
func fields() {
	missing := map[string]bool{}
	for _, m := range filtered.FindAllStringSubmatch(os.Args[2], -1) {
		missing[m[1]] = true
	}
	for d := json.NewDecoder(os.Stdin); ; {
		var object map[string]any
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) && len(missing) == 0 {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "without", missing, err)
			os.Exit(1)
		}
		for name := range object {
			delete(missing, name)
		}
	}
}
