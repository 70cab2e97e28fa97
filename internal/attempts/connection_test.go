package attempts

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Pipes is a network in memory, made of pipes. In a synctest bubble, requests through these
// pipes take no real time, so a slow machine cannot change the result of a test.
type Pipes struct {
	dialled, writes atomic.Int32
	calls           chan net.Conn
	closed          chan struct{}
	slow            bool // if set, each Write returns late (see slowToReturn)
}

func NewPipes() *Pipes { return &Pipes{calls: make(chan net.Conn), closed: make(chan struct{})} }

// Connect makes the connections of an HTTP transport go through p.
func (p *Pipes) Connect(transport *http.Transport) {
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		p.dialled.Add(1)
		here, there := net.Pipe()
		if p.slow {
			here = slowToReturn{here, &p.writes}
		}
		select {
		case p.calls <- there:
			return here, nil
		case <-p.closed:
			return nil, net.ErrClosed
		}
	}
}

func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.calls:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *Pipes) Close() error {
	close(p.closed)
	return nil
}

func (*Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// slowToReturn is a connection whose Write returns only after all other goroutines have blocked. By
// the end of a request's last Write, the server has answered, and the SDK has closed the request's
// body.
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

// overPipes calls fn with a network of pipes and an HTTP client on that network. The client
// reaches a server that reads each request completely before it calls the given handler.
func overPipes(t *testing.T, answer http.HandlerFunc, fn func(t *testing.T, client *http.Client, network *Pipes)) {
	synctest.Test(t, func(t *testing.T) {
		network := NewPipes()
		network.slow = true
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		})}
		go func() { _ = server.Serve(network) }()
		transport := &http.Transport{}
		network.Connect(transport)
		fn(t, &http.Client{Transport: transport}, network)
		transport.CloseIdleConnections()
		_ = server.Shutdown(t.Context())
	})
}

// readsAll calls fn with a network of pipes, and with a function that reads the given keys in
// one batch. The server answers that no item exists.
func readsAll(t *testing.T, fn func(t *testing.T, read func(keys ...string), network *Pipes)) {
	overPipes(t, answering(`{"Responses":{}}`), func(t *testing.T, client *http.Client, network *Pipes) {
		s := senderOf(t, "http://dynamodb.example", client)
		fn(t, func(keys ...string) {
			var all []protocol.Key
			for _, key := range keys {
				all = append(all, protocol.Key{Partition: key})
			}
			if _, _, err := s.ReadAll(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // by then the transport has either kept the connection for reuse or closed it
		}, network)
	})
}

func TestConnectionIsReusedIfReplyArrivesDuringWriteOfRequest(t *testing.T) {
	readsAll(t, func(t *testing.T, read func(keys ...string), network *Pipes) {
		long := strings.Repeat("k", 1000) // with such long keys, each request is written in several parts
		for range 10 {
			read(long+"1", long+"2", long+"3", long+"4")
		}
		if n := network.dialled.Load(); n != 1 {
			t.Errorf("%d connections for 10 requests, one after the other", n)
		}
	})
}

func TestRequestHeaderAndBodyAreSentInOneWrite(t *testing.T) {
	readsAll(t, func(t *testing.T, read func(keys ...string), network *Pipes) {
		read("a", "b")
		if n := network.writes.Load(); n != 1 {
			t.Errorf("%d writes of one request", n)
		}
	})
}

// The server plays AWS STS, which issues credentials. It sends its reply in two parts, a second
// apart.
func TestSTSReplySentInTwoPartsIsReadCompletely(t *testing.T) {
	overPipes(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<GetCallerIdentityResponse><GetCallerIdentityResult>`)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Second)
		_, _ = io.WriteString(w, `<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}, func(t *testing.T, client *http.Client, _ *Pipes) {
		out, err := stsOf("http://sts.example", client).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		if err != nil || aws.ToString(out.Account) != "123456789012" {
			t.Error(out, err)
		}
	})
}

func TestRegionCheckAllocatesNothingIfFailoverIsUnused(t *testing.T) {
	s, ctx := &Sender{Table: "locks"}, context.Background()
	if n := testing.AllocsPerRun(1000, func() { s.noteRegion(ctx) }); n > 0 {
		t.Errorf("%v allocations after each request", n)
	}
}

var errBefore, errAfter = errors.New("throttled"), errors.New("closed")

// sentBy implements Sent: its method Answered returns the field "answered", and its method LastErr
// returns errBefore.
type sentBy struct{ answered bool }

func (s sentBy) Answered() bool { return s.answered }
func (s sentBy) LastErr() error { return errBefore }

func TestAwaitReturnsNilForFinishedWriteEvenAfterDeadline(t *testing.T) {
	done := make(chan struct{})
	close(done)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := Await(ended, done, sentBy{answered: false}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAwaitOutlastsContextWhileOtherRequestsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(done) })
		began := time.Now()
		if err := Await(ctx, done, sentBy{answered: true}); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAwaitReturnsErrorAtDeadlineIfRequestHasNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errAfter)
		defer cancel()
		began := time.Now()
		err := Await(ctx, nil, sentBy{answered: false})
		if !errors.Is(err, errAfter) || !errors.Is(err, errBefore) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
