package serve

import (
	"context"
	"net"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/ui"
)

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
