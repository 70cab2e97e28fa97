package attempts

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// pipes is a network whose connections are pipes in memory.
type pipes struct {
	dialled, writes atomic.Int32
	accept          chan net.Conn
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	p.dialled.Add(1)
	here, there := net.Pipe()
	p.accept <- there
	return slowToReturn{here, &p.writes}, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// slowToReturn is a connection whose writer continues only when all other goroutines wait.
// So the reply to the last part of a request comes, and the SDK closes the request's body,
// before the writer continues.
type slowToReturn struct {
	net.Conn
	writes *atomic.Int32
}

func (c slowToReturn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	n, err := c.Conn.Write(b)
	time.Sleep(time.Millisecond)
	return n, err
}

// overPipes runs fn with a sender, and the network of pipes through which it reaches a
// server. The server finds no items.
func overPipes(t *testing.T, fn func(t *testing.T, s *Sender, network *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		proto, err := records.Of(layout.Native{})
		if err != nil {
			t.Fatal(err)
		}
		network := &pipes{accept: make(chan net.Conn)}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = w.Write([]byte(`{"Responses":{}}`))
		})}
		go func() { _ = server.Serve(network) }()
		transport := &http.Transport{DialContext: network.dial}
		fn(t, &Sender{Table: "locks", Keys: proto, Log: slog.New(slog.DiscardHandler), DB: dynamodb.New(dynamodb.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://dynamodb.example"), Credentials: aws.AnonymousCredentials{},
			HTTPClient: &http.Client{Transport: transport},
		})}, network)
		transport.CloseIdleConnections()
		close(network.accept)
		_ = server.Close()
	})
}

func TestConnectionIsReusedIfReplyArrivesBeforeWriteReturns(t *testing.T) {
	overPipes(t, func(t *testing.T, s *Sender, network *pipes) {
		long := strings.Repeat("k", 1000) // makes each request so long that it must be written in several parts
		for range 10 {
			if _, _, err := s.ReadAll(t.Context(), []protocol.Key{{Partition: long + "1"}, {Partition: long + "2"}, {Partition: long + "3"}, {Partition: long + "4"}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // gives the transport time either to take the connection back or to drop it
		}
		if n := network.dialled.Load(); n != 1 {
			t.Errorf("%d connections for 10 requests, one after the other", n)
		}
	})
}

func TestRequestHeaderAndBodyAreSentInOneWrite(t *testing.T) {
	overPipes(t, func(t *testing.T, s *Sender, network *pipes) {
		if _, _, err := s.ReadAll(t.Context(), []protocol.Key{{Partition: "a"}, {Partition: "b"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := network.writes.Load(); n != 1 {
			t.Errorf("%d writes of one request", n)
		}
	})
}

// The credential provider sends its reply in two parts. The request to it goes over the
// slow network of the tests above.
func TestForeignReplyFromSlowServerIsReadCompletely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{accept: make(chan net.Conn)}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, `<GetCallerIdentityResponse><GetCallerIdentityResult>`)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, `<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
		})}
		go func() { _ = server.Serve(network) }()
		transport := &http.Transport{DialContext: network.dial}
		out, err := sts.New(sts.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://sts.example"), Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
			HTTPClient: &http.Client{Transport: transport}, APIOptions: []func(*middleware.Stack) error{BoundedReplies},
		}).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		if err != nil || aws.ToString(out.Account) != "123456789012" {
			t.Error(out, err)
		}
		transport.CloseIdleConnections()
		close(network.accept)
		_ = server.Shutdown(t.Context())
	})
}
