package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProbesListenOnLoopbackUnlessAddressIsSet(t *testing.T) {
	for addr, local := range map[string]bool{":0": true, "127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false} {
		l, err := ForProbes(t.Context(), addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if got := l.Addr().(*net.TCPAddr); got.IP.IsLoopback() != local || got.Port == 0 {
			t.Errorf("%s: it listens on %v", addr, got)
		}
		if _, err := ForProbes(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "is in use: choose another address with --http") {
			t.Errorf("%s, again: %v", addr, err)
		}
		_ = l.Close()
	}
	for addr, want := range map[string]string{"": "use HOST:PORT", "8080": "use HOST:PORT", "127.0.0.1": "use HOST:PORT", ":http-no": "--http", "127.0.0.1:65536": "--http"} {
		if l, err := ForProbes(t.Context(), addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", addr, l, err)
		}
	}
}

// elsewhere is a listener with a non-loopback address, such as the address of a Kubernetes
// pod.
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
	status, _ = says(t, dial(), text)
	_ = server.Close()
	<-served
	time.Sleep(time.Second) // net/http waits for the unread rest of a request body for half a second
	return status
}

func TestProbesOnLoopbackRejectNonLocalHostHeaders(t *testing.T) {
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
			if got := [2]int{probe(t, here, here.dial, text), probe(t, there, there.dial, text)}; got != want {
				t.Errorf("%s: %v, want %v", host, got, want)
			}
		})
	}
}

func TestIdleProbeConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := pipes{make(chan net.Conn), make(chan struct{})}
		began := time.Now()
		if got := probe(t, here, here.dial, "GET /leader HTTP/1.1\r\nHost: "); got != 0 || time.Since(began) > 15*time.Second {
			t.Errorf("%d after %v", got, time.Since(began))
		}
	})
}
