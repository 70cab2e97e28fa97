// Package serve is what local, ui and elect need to serve this machine, and nobody else
// unless that is asked for: where they listen, the name under which browsers find the page
// and where probes ask (listen.go), and to which names the engine answers and to
// which key (engine.go). It knows neither the engine nor the page, nor
// what probes are answered.
package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/ui"
)

// Loopback listens on this machine only: the engine speaks no TLS. addr is the value of
// --addr, as everywhere here.
func Loopback(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, misuse.Errorf("--addr %s: use HOST:PORT, such as 127.0.0.1:8000", addr)
	}
	if !store.IsThisMachine(host) {
		return nil, misuse.Errorf("--addr %s: the engine is for this machine only: use 127.0.0.1:%s", addr, port)
	}
	return listen(ctx, "--addr", addr)
}

// listen listens at addr, which is the value of a flag.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	_, port, _ := net.SplitHostPort(addr)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return nil, misuse.Errorf("%s %s: the port must be a number from 0 to 65535", flag, addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, misuse.Errorf("%s is in use: choose another address with %s, such as 127.0.0.1:0 for any free port", addr, flag)
	}
	if err != nil {
		return nil, misuse.Errorf("%s %s: %v", flag, addr, err)
	}
	return listener, nil
}

// Page is where the page is.
type Page struct {
	Listeners []net.Listener
	Name      string // "host:port", of this process alone
	Host      string // "host:port" of the URL: the name, if browsers find this machine by it
}

// Close frees the addresses.
func (at *Page) Close() {
	for _, l := range at.Listeners {
		_ = l.Close()
	}
}

// ForPage listens on this machine only, unless anywhere.
func ForPage(ctx context.Context, addr string, anywhere bool) (*Page, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, misuse.Errorf("--addr %s: use HOST:PORT, such as 127.0.0.1:8765", addr)
	}
	if !anywhere && !store.IsThisMachine(host) {
		return nil, misuse.Errorf("--addr %s: the page is for this machine only: use 127.0.0.1 and a tunnel such as ssh -L, or add --unsafe-listen", addr)
	}
	at, err := listenByName(ctx, addr)
	for tries := 1; err != nil && port == "0" && tries < 10; tries++ {
		at, err = listenByName(ctx, addr) // a port that is free at one address may be taken at the other
	}
	return at, err
}

// listenByName listens wherever browsers look for a name that ends in .localhost: on
// both loopback addresses, so that nobody else can on one of them.
func listenByName(ctx context.Context, addr string) (*Page, error) {
	first, err := listen(ctx, "--addr", addr)
	if err != nil {
		return nil, err
	}
	ip, port, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	at := &Page{Listeners: []net.Listener{first}, Name: net.JoinHostPort(ui.NewName(), port), Host: first.Addr().String()}
	other := map[string]string{"127.0.0.1": "::1", "::1": "127.0.0.1"}[ip]
	if other == "" {
		return at, nil // browsers do not look here
	}
	at.Host = at.Name
	if !isAddressHere(ctx, other) {
		return at, nil
	}
	second, err := listen(ctx, "--addr", net.JoinHostPort(other, port))
	if err != nil {
		at.Close()
		return nil, err
	}
	at.Listeners = append(at.Listeners, second)
	return at, nil
}

// isAddressHere reports whether anybody can listen on an address.
func isAddressHere(ctx context.Context, ip string) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// ForProbes listens where probes and load balancers ask. addr is the value of --http. Without a
// host that is this machine only: whoever wants to be asked from elsewhere names an address.
func ForProbes(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return nil, misuse.Errorf("--http %s: use HOST:PORT, such as 127.0.0.1:8080, or 0.0.0.0:8080 for probes from elsewhere", addr)
	case host == "":
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return listen(ctx, "--http", addr)
}

// Probes answers who asks at a listener. On loopback that is this machine, by a name of its
// own: a site whose DNS points its name there learns nothing. Elsewhere a probe has whatever
// name its load balancer has for it.
func Probes(answers http.Handler, at net.Listener) *http.Server {
	if tcp, ok := at.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		answers = refuseOtherNames(answers)
	}
	return &http.Server{
		Handler:           answers,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       2 * time.Minute, // more than the pause between two probes
		MaxHeaderBytes:    8 << 10,
	}
}
