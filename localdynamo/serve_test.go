package localdynamo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
)

// fragile is a Store whose transactions panic at their second Put.
type fragile struct{ Store }

func (s fragile) Update(fn func(Tx) error) error {
	return s.Store.Update(func(tx Tx) error { return fn(&fragileTx{Tx: tx}) })
}

type fragileTx struct {
	Tx
	puts int
}

func (tx *fragileTx) Put(key, value []byte) error {
	if tx.puts++; tx.puts > 1 {
		panic("boom")
	}
	return tx.Tx.Put(key, value)
}

const twoPuts = `{"RequestItems":{"locks":[{"PutRequest":{"Item":{"id":{"S":"b"}}}},{"PutRequest":{"Item":{"id":{"S":"c"}}}}]}}`

func TestPanicInStoreIsLoggedAndChangesNothing(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	e := seededEngine(t)
	whole := storedBy(t, e)
	sound := e.store
	e.store = fragile{sound}
	for range 3 {
		replied(t, "by HTTP", send(e, "BatchWriteItem", twoPuts), http.StatusInternalServerError, "#InternalServerError", "boom")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localdynamo/", strings.NewReader(twoPuts))
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.BatchWriteItem")
		reply, err := e.RoundTrip(r)
		if err != nil || reply.StatusCode != http.StatusInternalServerError {
			t.Errorf("in this process: %v, %v", reply, err)
		}
	}
	if said := strings.Count(log.String(), "boom"); said != 1 || !strings.Contains(log.String(), "fragileTx") {
		t.Errorf("logged %d times, want once with the stack: %s", said, &log)
	}
	e.store = sound
	same(t, "the store", storedBy(t, e), whole)
	replied(t, "after the panics", send(e, "BatchWriteItem", twoPuts), http.StatusOK)
}

func TestEngineRejectsRequestsFromBrowserPages(t *testing.T) {
	const put = `{"TableName":"locks","Item":{"id":{"S":"evil"}}}`
	const allow = "Access-Control-Allow-Origin"
	for name, change := range map[string]func(*http.Request){
		"of another site":                               func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"in a sandbox":                                  func(r *http.Request) { r.Header.Set("Origin", "null") },
		"with the server's own origin":                  func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8000") },
		"whose DNS name points to the server":           func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") },
		"whose DNS name points to the server, with GET": func(r *http.Request) { r.Host, r.Method = "evil.example", http.MethodGet },
		"that sends a preflight request":                func(r *http.Request) { r.Method = http.MethodOptions },
		"that sends a form":                             func(r *http.Request) { r.Header.Del("X-Amz-Target") },
	} {
		e := seededEngine(t)
		before := storedBy(t, e)
		w := send(e, "PutItem", put, change)
		if w.Code != http.StatusForbidden && w.Code != http.StatusBadRequest || w.Header().Get(allow) != "" {
			t.Errorf("a page %s: %d %s %v", name, w.Code, w.Body, w.Header())
		}
		same(t, "after a page "+name+": the store", storedBy(t, e), before)
	}
}

// cut is a request body that returns an error at its end, as if the connection broke.
type cut struct{ io.Reader }

func (c cut) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestTruncatedBodyChangesNothing(t *testing.T) {
	const put = `{"TableName":"locks","Item":{"id":{"S":"half"}}}`
	for name, length := range map[string]int64{"chunked": -1, "with Content-Length": int64(len(put)) + 1} {
		e := seededEngine(t)
		before := storedBy(t, e)
		replied(t, name, serve(e, "PutItem", cut{strings.NewReader(put)}, ofLength(length)), http.StatusBadRequest, "could not be read")
		same(t, name+": the store", storedBy(t, e), before)
	}
}

const theID, theSecret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

// guarded starts an HTTP server for an engine that requires an access key. It returns the
// server's URL.
func guarded(t *testing.T) string {
	t.Helper()
	e := New(WithAccessKey(theID, theSecret))
	server := httptest.NewServer(e)
	t.Cleanup(func() { ok(t, e.Close()) })
	t.Cleanup(server.Close)
	return server.URL
}

func TestServeHTTPRejectsWrongCredentials(t *testing.T) {
	url := guarded(t)
	for name, tc := range map[string]struct {
		credentials aws.CredentialsProvider
		want        string // expected error code; empty if the request must succeed
	}{
		"the access key":          {credentials.NewStaticCredentialsProvider(theID, theSecret, ""), ""},
		"with a session token":    {credentials.NewStaticCredentialsProvider(theID, theSecret, "session"), ""},
		"another id":              {credentials.NewStaticCredentialsProvider("local", theSecret, ""), "UnrecognizedClientException"},
		"the beginning of the id": {credentials.NewStaticCredentialsProvider(theID[:5], theSecret, ""), "UnrecognizedClientException"},
		"another secret":          {credentials.NewStaticCredentialsProvider(theID, "local", ""), "InvalidSignatureException"},
		"no secret":               {aws.AnonymousCredentials{}, "MissingAuthenticationTokenException"},
	} {
		client := dynamodb.New(dynamodb.Options{BaseEndpoint: aws.String(url), Region: "eu-west-1", Credentials: tc.credentials})
		_, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		var api smithy.APIError
		switch {
		case tc.want == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.As(err, &api) || api.ErrorCode() != tc.want || !strings.Contains(api.ErrorMessage(), "AWS_ACCESS_KEY_ID"):
			t.Errorf("%s: %v, want %s with advice", name, err, tc.want)
		}
	}
}

// signedAs signs a request with the SDK, and sends it to the engine. Before that, it calls change,
// which may modify the signed request.
func signedAs(t *testing.T, e *Engine, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://127.0.0.1:8000"), Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider(theID, theSecret, ""), Retryer: aws.NopRetryer{},
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			if r.Host == "" {
				r.Host = r.URL.Host
			}
			change(r)
			e.ServeHTTP(w, r)
			return nil, errors.New("that is all")
		}),
	})
	_, _ = client.ListTables(context.Background(), &dynamodb.ListTablesInput{Limit: aws.Int32(7)})
	return w
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// replaced returns a function that replaces a text in the Authorization header of a request.
func replaced(old, by string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, by, 1))
	}
}

func TestSignatureIsInvalidForChangedRequest(t *testing.T) {
	e := New(WithAccessKey(theID, theSecret))
	defer e.Close()
	replied(t, "unchanged request", signedAs(t, e, func(*http.Request) {}), http.StatusOK)
	for name, change := range map[string]func(*http.Request){
		"body":           func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0 },
		"operation":      func(r *http.Request) { r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DescribeLimits") },
		"host":           func(r *http.Request) { r.Host = "127.0.0.1:9000" },
		"time":           func(r *http.Request) { r.Header.Set("X-Amz-Date", "20200101T000000Z") },
		"path":           func(r *http.Request) { r.URL.Path = "/x" },
		"signed headers": replaced(";x-amz-target", ""),
		"region":         replaced("eu-west-1", "eu-west-2"),
		"kind":           replaced("HMAC", "ECDSA-P256"),
		"missing signature": func(r *http.Request) {
			given, _, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", given+"Signature=")
		},
		"missing scope": func(r *http.Request) { r.Header.Set("Authorization", algorithm+" Credential="+theID) },
	} {
		if w := signedAs(t, e, change); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Signature") && !strings.Contains(w.Body.String(), "Authorization") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// The request and the signature are Amazon's published example post-vanilla
// (aws-sig-v4-test-suite).
func TestSignatureMatchesExamplePublishedByAmazon(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Host = "example.amazonaws.com"
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	s := signature{
		scope: []string{"20150830", "us-east-1", "service", "aws4_request"}, headers: []string{"host", "x-amz-date"},
		mac: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
	}
	if key := (&accessKey{theID, theSecret}); !s.isOf(r, "", key) || s.isOf(r, "x", key) {
		t.Error("the example was refused, or another body was accepted")
	}
}

// noBody is a request body that fails the test if it is read.
type noBody struct{ t *testing.T }

func (b noBody) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, errors.New("not for you")
}

func (noBody) Close() error { return nil }

func TestBodyOfUnsignedRequestIsNotRead(t *testing.T) {
	e := New(WithAccessKey(theID, theSecret))
	defer e.Close()
	for _, authorization := range []string{"", "Basic eA==", algorithm + " Credential=local/20200101/local/dynamodb/aws4_request, SignedHeaders=host;x-amz-target, Signature=00"} {
		w := serve(e, "ListTables", noBody{t}, func(r *http.Request) { r.Header.Set("Authorization", authorization) })
		replied(t, authorization, w, http.StatusBadRequest)
	}
}
