package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// pipes is a listener whose connections are net.Pipe connections in memory. Unlike network
// connections, these work in a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.done)
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// serveLocally runs a test in a synctest bubble, against the server that the command
// leasehold local starts.
func serveLocally(t *testing.T, test func(t *testing.T, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		engine := localdynamo.New()
		server := Engine(engine)
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		test(t, listener.dial)
		lab.OK(t, server.Close())
		<-served
		time.Sleep(time.Second) // net/http waits for the unread rest of a request body for half a second
		lab.OK(t, engine.Close())
	})
}

const listTables = "POST / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 2\r\n\r\n{}"

// says sends text on the connection and returns the status and the body of the reply. The
// status is 0 if the server has closed the connection without a reply.
func says(t *testing.T, c net.Conn, text string) (int, string) {
	t.Helper()
	go func() { _, _ = io.WriteString(c, text) }() // fails if the server closes the connection
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	body := lab.Must(io.ReadAll(reply.Body))(t)
	_ = reply.Body.Close()
	return reply.StatusCode, string(body)
}

func TestLocalServerDisconnectsSlowClient(t *testing.T) {
	for name, tc := range map[string]struct {
		sends string
		most  time.Duration
	}{
		"nothing":               {"", 10 * time.Second},
		"half a header":         {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-", 10 * time.Second},
		"half a body":           {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{", time.Minute},
		"half a chunk":          {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{", time.Minute},
		"a request and no more": {listTables, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			serveLocally(t, func(t *testing.T, dial func() net.Conn) {
				c := dial()
				began := time.Now()
				go func() { _, _ = io.WriteString(c, tc.sends) }()
				_, _ = io.Copy(io.Discard, c) // returns when the server closes the connection
				if took := time.Since(began); took > tc.most || took == 0 {
					t.Errorf("the connection was closed after %v, want %v at most", took, tc.most)
				}
			})
		})
	}
}

func TestLocalServerAnswersDespiteManyIdleConnections(t *testing.T) {
	serveLocally(t, func(t *testing.T, dial func() net.Conn) {
		for range 500 {
			c := dial()
			defer c.Close()
		}
		if status, body := says(t, dial(), listTables); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
	})
}

func TestLocalServerRejectsNonLocalHostHeaders(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:8000": 200, "localhost:8000": 200, "LOCALHOST": 200, "[::1]:8000": 200, "127.0.0.53": 200, "dynamo.localhost:8000": 200,
		"evil.example:8000": 421, "evil.example": 421, "192.0.2.1:8000": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "0.0.0.0": 421,
	} {
		serveLocally(t, func(t *testing.T, dial func() net.Conn) {
			if status, body := says(t, dial(), strings.Replace(listTables, "127.0.0.1:8000", host, 1)); status != want {
				t.Errorf("%s: %d %s, want %d", host, status, body, want)
			}
		})
	}
}

func TestLocalServerAnswersBadRequestsWithErrors(t *testing.T) {
	const target = "Host: localhost\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"
	deep := strings.Repeat(`{"a":`, 100_000)
	for name, tc := range map[string]struct {
		sends string
		want  int
	}{
		"HTTP/1.0":                 {"POST / HTTP/1.0\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 2\r\n\r\n{}", 200},
		"another protocol":         {"SSH-2.0-x\r\n\r\n", 400},
		"HTTP/9":                   {"POST / HTTP/9.0\r\n" + target + "\r\n", 505},
		"two hosts":                {"POST / HTTP/1.1\r\nHost: localhost\r\n" + target + "\r\n", 400},
		"no host":                  {"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400},
		"a chunk of no size":       {"POST / HTTP/1.1\r\n" + target + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n", 400},
		"a chunk that is too long": {"POST / HTTP/1.1\r\n" + target + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", 400},
		"another encoding":         {"POST / HTTP/1.1\r\n" + target + "Transfer-Encoding: gzip\r\n\r\n", 501},
		"a negative length":        {"POST / HTTP/1.1\r\n" + target + "Content-Length: -1\r\n\r\n", 400},
		"two lengths":              {"POST / HTTP/1.1\r\n" + target + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"huge headers":             {"POST / HTTP/1.1\r\n" + target + "X: " + strings.Repeat("x", 100_000) + "\r\n\r\n", 431},
		"no target":                {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 400},
		"a target of another API":  {"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\nContent-Length: 2\r\n\r\n{}", 400},
		"a GET":                    {"GET / HTTP/1.1\r\n" + target + "\r\n", 400},
		"no JSON":                  {"POST / HTTP/1.1\r\n" + target + "Content-Length: 3\r\n\r\n\xff{}", 400},
		"JSON without an end":      {"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(deep)) + deep, 400},
		"a body of 17 MB":          {"POST / HTTP/1.1\r\n" + target + "Content-Length: 17825792\r\n\r\n" + strings.Repeat(" ", 17<<20), 413},
	} {
		t.Run(name, func(t *testing.T) {
			serveLocally(t, func(t *testing.T, dial func() net.Conn) {
				c := dial()
				defer c.Close()
				if status, body := says(t, c, tc.sends); status != tc.want {
					t.Errorf("%d %.200q, want %d", status, body, tc.want)
				}
				if status, body := says(t, dial(), listTables); status != http.StatusOK {
					t.Errorf("the next client is told %d %s", status, body)
				}
			})
		})
	}
}
