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

// pipes is a listener for connections in memory (net.Pipe). Such connections work in a synctest
// bubble, unlike network connections.
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

// serveLocally runs a test in a synctest bubble, against the server that "leasehold local" starts.
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

// exchange sends text on the connection, and returns the status and the body of the reply.
// The status is 0 if the server has closed the connection without a reply.
func exchange(t *testing.T, c net.Conn, text string) (int, string) {
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
	type variant struct {
		sends string
		most  time.Duration
	}
	lab.Variants(t, map[string]variant{
		"nothing":               {"", 10 * time.Second},
		"half a header":         {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-", 10 * time.Second},
		"half a body":           {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{", time.Minute},
		"half a chunk":          {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{", time.Minute},
		"a request and no more": {listTables, 2 * time.Minute},
	}, func(t *testing.T, tc variant) {
		serveLocally(t, func(t *testing.T, dial func() net.Conn) {
			c := dial()
			began := time.Now()
			go func() { _, _ = io.WriteString(c, tc.sends) }()
			_, _ = io.Copy(io.Discard, c) // returns when the server closes the connection
			lab.WantTook(t, "the connection was closed after", began, 1, tc.most)
		})
	})
}

func TestLocalServerAnswersDespiteIdleConnections(t *testing.T) {
	serveLocally(t, func(t *testing.T, dial func() net.Conn) {
		for range 500 {
			c := dial()
			defer c.Close()
		}
		if status, body := exchange(t, dial(), listTables); status != http.StatusOK {
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
			if status, body := exchange(t, dial(), strings.Replace(listTables, "127.0.0.1:8000", host, 1)); status != want {
				t.Errorf("%s: %d %s, want %d", host, status, body, want)
			}
		})
	}
}

func TestLocalServerAnswersBadRequestsWithErrors(t *testing.T) {
	const target = "Host: localhost\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"
	deep := strings.Repeat(`{"a":`, 100_000)
	type variant struct {
		sends string
		want  int
	}
	lab.Variants(t, map[string]variant{
		"HTTP/1.0":                 {"POST / HTTP/1.0\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 2\r\n\r\n{}", 200},
		"another protocol":         {"SSH-2.0-x\r\n\r\n", 400},
		"HTTP/9":                   {"POST / HTTP/9.0\r\n" + target + "\r\n", 505},
		"two hosts":                {"POST / HTTP/1.1\r\nHost: localhost\r\n" + target + "\r\n", 400},
		"no host":                  {"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400},
		"a chunk without a size":   {"POST / HTTP/1.1\r\n" + target + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n", 400},
		"a chunk that is too long": {"POST / HTTP/1.1\r\n" + target + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", 400},
		"another encoding":         {"POST / HTTP/1.1\r\n" + target + "Transfer-Encoding: gzip\r\n\r\n", 501},
		"a negative length":        {"POST / HTTP/1.1\r\n" + target + "Content-Length: -1\r\n\r\n", 400},
		"two lengths":              {"POST / HTTP/1.1\r\n" + target + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"huge headers":             {"POST / HTTP/1.1\r\n" + target + "X: " + strings.Repeat("x", 100_000) + "\r\n\r\n", 431},
		"no target":                {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 400},
		"a target of another API":  {"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\nContent-Length: 2\r\n\r\n{}", 400},
		"a GET":                    {"GET / HTTP/1.1\r\n" + target + "\r\n", 400},
		"a body that is not JSON":  {"POST / HTTP/1.1\r\n" + target + "Content-Length: 3\r\n\r\n\xff{}", 400},
		"JSON without an end":      {"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(deep)) + deep, 400},
		"a body of 17 MB":          {"POST / HTTP/1.1\r\n" + target + "Content-Length: 17825792\r\n\r\n" + strings.Repeat(" ", 17<<20), 413},
	}, func(t *testing.T, tc variant) {
		serveLocally(t, func(t *testing.T, dial func() net.Conn) {
			c := dial()
			defer c.Close()
			if status, body := exchange(t, c, tc.sends); status != tc.want {
				t.Errorf("%d %.200q, want %d", status, body, tc.want)
			}
			if status, body := exchange(t, dial(), listTables); status != http.StatusOK {
				t.Errorf("the next client receives %d %s", status, body)
			}
		})
	})
}

// The server must listen on all addresses of its host name. Otherwise another user could listen on
// an address that the server left free, and receive requests that browsers send to the page.
func TestUIListensOnBothLoopbackAddresses(t *testing.T) {
	if !isAddressHere(t.Context(), "::1") {
		t.Skip("this machine has no ::1")
	}
	at := lab.Must(ForPage(t.Context(), "127.0.0.1:0", false))(t)
	defer at.Close()
	host, port, err := net.SplitHostPort(at.Host)
	if err != nil || at.Host != at.Name || !strings.HasSuffix(host, ".localhost") {
		t.Errorf("the host is %s, the name is %s", at.Host, at.Name)
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
		if err == nil {
			t.Errorf("another process can listen on %s", l.Addr())
			_ = l.Close()
		}
	}
}

func TestUIFailsIfPortIsInUseOnEitherLoopbackAddress(t *testing.T) {
	if !isAddressHere(t.Context(), "::1") {
		t.Skip("this machine has no ::1")
	}
	for _, c := range [][2]string{{"127.0.0.1", "::1"}, {"::1", "127.0.0.1"}} {
		theirs := lab.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(c[1], "0")))(t)
		defer theirs.Close()
		_, port, _ := net.SplitHostPort(theirs.Addr().String())
		if at, err := ForPage(t.Context(), net.JoinHostPort(c[0], port), false); err == nil {
			t.Errorf("the UI listens on %s alone", at.Listeners[0].Addr())
			at.Close()
		} else if !strings.Contains(err.Error(), "is in use") {
			t.Errorf("the error is %q", err)
		}
	}
}

func TestPageOnAllInterfacesHasNoLocalhostURL(t *testing.T) {
	at := lab.Must(ForPage(t.Context(), "0.0.0.0:0", true))(t)
	defer at.Close()
	if strings.Contains(at.Host, "localhost") || at.Name == at.Host || len(at.Listeners) != 1 {
		t.Errorf("the host is %s, the name is %s", at.Host, at.Name)
	}
}

func TestProbeServerListensOnLoopbackByDefault(t *testing.T) {
	for addr, local := range map[string]bool{":0": true, "127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false} {
		l, err := ForProbes(t.Context(), addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if got := l.Addr().(*net.TCPAddr); got.IP.IsLoopback() != local || got.Port == 0 {
			t.Errorf("%s: the server listens on %v", addr, got)
		}
		again := lab.ErrorOf(ForProbes(t.Context(), l.Addr().String()))
		lab.WantText(t, addr+", a second time", again, "is in use: choose another address with --http")
		_ = l.Close()
	}
	for addr, want := range map[string]string{"": "use HOST:PORT", "8080": "use HOST:PORT", "127.0.0.1": "use HOST:PORT", ":http-no": "--http", "127.0.0.1:65536": "--http"} {
		lab.WantText(t, addr, lab.ErrorOf(ForProbes(t.Context(), addr)), want)
	}
}

// elsewhere is a listener with a non-loopback address, such as the address of a Kubernetes pod.
type elsewhere struct{ pipes }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080} }

// probe starts the probe server on the listener, sends text to it, and returns the status
// of the reply.
func probe(t *testing.T, listener net.Listener, dial func() net.Conn, text string) (status int) {
	t.Helper()
	synctest.Wait()
	server := Probes(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "yes") }), listener)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	status, _ = exchange(t, dial(), text)
	_ = server.Close()
	<-served
	time.Sleep(time.Second) // net/http waits for the unread rest of a request body for half a second
	return status
}

func TestProbeServerChecksHostHeaderOnlyOnLoopback(t *testing.T) {
	for host, want := range map[string][2]int{ // expected status by Host header: from a server on loopback, and from a server on another address
		"127.0.0.1:8080":   {200, 200},
		"localhost":        {200, 200},
		"192.0.2.7:8080":   {421, 200},
		"evil.example":     {421, 200},
		"scheduler.prod:9": {421, 200},
	} {
		text := fmt.Sprintf("GET /leader HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		synctest.Test(t, func(t *testing.T) {
			here := pipes{make(chan net.Conn), make(chan struct{})}
			there := elsewhere{pipes{make(chan net.Conn), make(chan struct{})}}
			lab.Want(t, host, [2]int{probe(t, here, here.dial, text), probe(t, there, there.dial, text)}, want)
		})
	}
}

func TestProbeServerDisconnectsSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := pipes{make(chan net.Conn), make(chan struct{})}
		began := time.Now()
		lab.Want(t, "status", probe(t, here, here.dial, "GET /leader HTTP/1.1\r\nHost: "), 0)
		lab.WantTook(t, "the client was disconnected after", began, 0, 15*time.Second)
	})
}
