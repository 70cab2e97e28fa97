package attempts

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// answerTo sends a GetItem request to a server, and returns the error of the request. The server
// sends a header as DynamoDB does, and calls the function "body" to write the body of its reply.
func answerTo(t *testing.T, body func(http.ResponseWriter)) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		body(w)
	}))
	defer server.Close()
	db := dynamodb.New(dynamodb.Options{Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{},
		HTTPClient: server.Client(), EnableAcceptEncodingGzip: true})
	_, err := db.GetItem(context.WithoutCancel(t.Context()), &dynamodb.GetItemInput{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "job"}},
	}, Bounded)
	return err
}

// writeWithoutEnd writes the string start, and then more and more letters, until the reader
// closes the connection.
func writeWithoutEnd(w io.Writer, start string) {
	_, err := io.WriteString(w, start)
	for chunk := strings.Repeat("a", 1<<20); err == nil; {
		_, err = io.WriteString(w, chunk)
	}
}

func TestReplyThatIsTooLongOrDeeplyNestedIsRejected(t *testing.T) {
	var foreign *ForeignError
	err := answerTo(t, func(w http.ResponseWriter) { writeWithoutEnd(w, `{"Item":{"a":{"S":"`) })
	if !errors.As(err, &foreign) || !strings.HasPrefix(foreign.Endpoint, "http://127.0.0.1:") {
		t.Errorf("a body without end: %.300v", err)
	}
	deep := strings.Repeat(`{"M":{"a":`, 1_500_000)
	if err := answerTo(t, func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"Item":{"a":`+deep) }); err == nil {
		t.Error("a very deeply nested reply was accepted")
	}
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.Sys > 1<<30 {
		t.Errorf("the process uses %d MB", m.Sys>>20)
	}
}

func TestCompressedReplyIsNotDecompressed(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{"Item":{"a":{"S":"a"}}}`))
	_ = w.Close()
	if err := answerTo(t, func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}); err == nil {
		t.Error("the reply was decompressed")
	}
}

// A hostile server may answer in place of the credential provider. For example, another
// user of the machine may listen on the port of a container's credential agent.
func TestSizeOfCredentialProviderReplyIsLimited(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeWithoutEnd(w, `{"AccessKeyId":"`) }))
	defer server.Close()
	bounded := []func(*middleware.Stack) error{BoundedReplies}
	for name, ask := range map[string]func() error{
		"container credentials": func() error {
			_, err := endpointcreds.New(server.URL, func(o *endpointcreds.Options) {
				o.HTTPClient, o.APIOptions, o.Retryer = server.Client(), bounded, aws.NopRetryer{}
			}).Retrieve(t.Context())
			return err
		},
		"STS": func() error {
			_, err := stsOf(server.URL, server.Client()).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			return err
		},
		"instance metadata": func() error {
			_, err := imds.New(imds.Options{Endpoint: server.URL, HTTPClient: server.Client(), APIOptions: bounded, Retryer: aws.NopRetryer{}}).
				GetInstanceIdentityDocument(t.Context(), &imds.GetInstanceIdentityDocumentInput{})
			return err
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "longer than any of DynamoDB's") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// senderTo returns a Sender whose server answers every request with the given body.
func senderTo(t *testing.T, body string) *Sender {
	t.Helper()
	server := httptest.NewServer(answering(body))
	t.Cleanup(server.Close)
	return senderOf(t, server.URL, server.Client())
}

// answering returns an HTTP handler that answers every request with the given body and the
// content type of DynamoDB.
func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, body)
	}
}

// senderOf returns a Sender whose requests go to url through the given HTTP client.
func senderOf(t *testing.T, url string, client *http.Client) *Sender {
	t.Helper()
	proto, err := records.Of(layout.Native{})
	if err != nil {
		t.Fatal(err)
	}
	return &Sender{
		DB:    dynamodb.New(dynamodb.Options{Region: "eu-west-1", BaseEndpoint: aws.String(url), Credentials: aws.AnonymousCredentials{}, HTTPClient: client}),
		Table: "locks", Keys: proto, Chance: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
	}
}

// stsOf returns a client of AWS STS that limits the size of replies.
func stsOf(url string, client *http.Client) *sts.Client {
	return sts.New(sts.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(url), Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
		HTTPClient: client, APIOptions: []func(*middleware.Stack) error{BoundedReplies},
	})
}

// The server returns one item of a batch read, but reports all keys of the batch as unprocessed.
func TestBatchReadFailsIfReturnedItemIsListedAsUnprocessed(t *testing.T) {
	s := senderTo(t, `{"Responses":{"locks":[{"key":{"S":"a"}}]},"UnprocessedKeys":{"locks":{"Keys":[{"key":{"S":"a"}},{"key":{"S":"b"}}]}}}`)
	_, requests, err := s.ReadAll(t.Context(), []protocol.Key{{Partition: "a"}, {Partition: "b"}})
	var foreign *ForeignError
	if !errors.As(err, &foreign) || requests != 1 {
		t.Error(requests, err)
	}
}

func TestSenderFailsIfReplyLacksMandatoryFields(t *testing.T) {
	s := senderTo(t, `{}`)
	for name, ask := range map[string]func() error{
		"a write": func() error { return s.Write(t.Context(), protocol.NewUpdate(keyItem), Limit).Err },
		"a batch": func() error {
			_, _, err := s.ReadAll(t.Context(), []protocol.Key{{Partition: "a"}})
			return err
		},
		"a scan": func() error {
			_, err := s.Page(t.Context(), Listing{}, &Walk{})
			return err
		},
		"a query": func() error {
			_, err := s.Page(t.Context(), Listing{Partition: "a"}, &Walk{})
			return err
		},
	} {
		var foreign *ForeignError
		if err := ask(); !errors.As(err, &foreign) || !strings.HasPrefix(foreign.Endpoint, "http://127.0.0.1:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := missing(middleware.Metadata{}, "items"); err != nil {
		t.Errorf("reply of a wrapper, without a server: %v", err)
	}
}

func TestTransactionReadReturnsNilForMissingItem(t *testing.T) {
	s := senderTo(t, `{"Responses":[{"Item":{"key":{"S":"a"}}},{},{"Item":{}}]}`)
	get := types.TransactGetItem{Get: &types.Get{TableName: aws.String("locks"), Key: keyItem}}
	items, err := s.ReadTogether(t.Context(), []types.TransactGetItem{get, get, get})
	if err != nil || len(items) != 3 || items[0] == nil || items[1] != nil || items[2] != nil {
		t.Errorf("%#v, %v", items, err)
	}
}

func FuzzReplyIsReadCompletelyOrRejected(f *testing.F) {
	f.Add([]byte(`{"Item":{"a":{"S":"\\""}}}`))
	f.Add(bytes.Repeat([]byte(`{"M":`), 200))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := &replyBody{ReadCloser: io.NopCloser(bytes.NewReader(body)), left: 1 << 10}
		got, err := io.ReadAll(b)
		var foreign *ForeignError
		if err != nil && !errors.As(err, &foreign) || err == nil && (!bytes.Equal(got, body) || len(body) > 1<<10) {
			t.Errorf("%d of %d bytes, %v", len(got), len(body), err)
		}
	})
}

// A reply that arrives before the client has sent its request cannot come from DynamoDB.
// net/http then returns an error without an exported type. The client must turn that error into
// a ForeignError.
func TestForeignErrorIsReturnedIfServerSendsDataBeforeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { _, _ = io.WriteString(server, "SSH-2.0-OpenSSH_9.6\r\n") }()
			return client, nil
		}}
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { synctest.Wait() },
		}), http.MethodPost, "http://127.0.0.1:1/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := bounded{&http.Client{Transport: transport}}.Do(request)
		if reply != nil {
			_ = reply.Body.Close()
		}
		var foreign *ForeignError
		if !errors.As(err, &foreign) {
			t.Error(err)
		}
	})
}

func endsAt(n int) protocol.Item {
	return protocol.Item{"key": &types.AttributeValueMemberS{Value: strconv.Itoa(n)}}
}

// If a server lists the same keys again and again, the listing must stop soon after the first
// repeated key. This must hold wherever the cycle of keys begins, and for every length of the
// cycle.
func TestListingFailsSoonAfterServerRepeatsStartKey(t *testing.T) {
	for _, first := range []int{0, 1, 2, 3, 7, 100, 1000} {
		for _, round := range []int{1, 2, 3, 8, 99, 1000} {
			var w Walk
			var err error
			pages := 0
			for ; err == nil && pages < 1e5; pages++ {
				at := pages
				if at >= first {
					at = first + (pages-first)%round
				}
				err = w.Pass(middleware.Metadata{}, []protocol.Item{}, endsAt(at))
			}
			var foreign *ForeignError
			if !errors.As(err, &foreign) || pages > 1+3*(first+round) {
				t.Errorf("%d pages, then a cycle of %d: the listing ended after %d pages with %v", first, round, pages, err)
			}
		}
	}
}

func TestListingStopsIfPageDoesNotAdvanceStartKey(t *testing.T) {
	w := Walk{Start: endsAt(1)}
	if err := w.Pass(middleware.Metadata{}, nil, endsAt(1)); err == nil {
		t.Error("the listing continues")
	}
}

// A listing may have any number of empty pages, because a filter can remove all items of a page.
func TestListingContinuesAfterEmptyPagesIfStartKeyAdvances(t *testing.T) {
	var w Walk
	for n := range 100_000 {
		if err := w.Pass(middleware.Metadata{}, []protocol.Item{}, endsAt(n)); err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Pass(middleware.Metadata{}, nil, nil); err != nil || len(w.Start) != 0 {
		t.Error(w.Start, err)
	}
}
