//go:build linux

// Package proxy runs a proxy between one process and a server of the DynamoDB API. The
// proxy counts the requests of the process, and can deny requests instead of passing them
// to the server.
package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

// Proxy forwards requests and counts them. Its methods are safe for concurrent
// use.
type Proxy struct {
	Endpoint string // http://127.0.0.1:port

	mu     sync.Mutex
	asked  map[string]int
	failed map[string]bool
}

// Run starts a proxy in front of a server. When the test ends, the proxy is closed.
func Run(t testing.TB, server *engines.Server) *Proxy {
	t.Helper()
	behind, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{asked: map[string]int{}, failed: map[string]bool{}}
	forward := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(behind); r.Out.Host = r.In.Host },
		Transport:    &http.Transport{},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.count(operation(r)) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"com.amazon.coral.service#AccessDeniedException","message":"denied by the test"}`))
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		forward.Transport.(*http.Transport).CloseIdleConnections()
	})
	p.Endpoint = front.URL
	return p
}

// Asked returns how many requests for the given operations the proxy has received since the
// last Reset.
func (p *Proxy) Asked(operations ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range operations {
		n += p.asked[o]
	}
	return n
}

// Reset sets all counts to zero.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.asked)
}

// Deny makes the proxy answer every later request for an operation with
// AccessDeniedException.
func (p *Proxy) Deny(operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[operation] = true
}

func (p *Proxy) count(operation string) (deny bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[operation]++
	return p.failed[operation]
}

// operation returns the DynamoDB operation of a request, such as GetItem, from the header
// X-Amz-Target.
func operation(r *http.Request) string {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return name
}
