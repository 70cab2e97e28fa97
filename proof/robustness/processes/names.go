//go:build linux

package processes

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// names is a DNS server for the workers. If no address is set for a name, the server answers
// that the name does not exist.
type names struct {
	address string
	socket  net.PacketConn

	mu  sync.Mutex
	all map[string]string // IPv4 addresses by host name
}

// newNames starts a DNS server that knows no names yet. The server runs until the test ends.
func newNames(t testing.TB) *names {
	t.Helper()
	socket, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{address: socket.LocalAddr().String(), socket: socket, all: map[string]string{}}
	var over sync.WaitGroup
	over.Go(n.run)
	t.Cleanup(func() { _ = socket.Close(); over.Wait() })
	return n
}

// set sets the address of a name. An empty address removes the name.
func (n *names) set(name, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[name] = address
}

func (n *names) run() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.socket.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply, ok := n.answer(buf[:size]); ok {
			_, _ = n.socket.WriteTo(reply, from)
		}
	}
}

// answer returns the DNS reply to a query, which must contain one question.
func (n *names) answer(query []byte) ([]byte, bool) {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	n.mu.Lock()
	address := net.ParseIP(n.all[strings.TrimSuffix(q.Name.String(), ".")]).To4()
	n.mu.Unlock()
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	switch {
	case address == nil:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA: // the names have no IPv6 addresses
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
			Body:   &dnsmessage.AResource{A: [4]byte(address)},
		}}
	}
	reply, err := m.Pack()
	return reply, err == nil
}

// resolver returns a resolver that uses the DNS server at the given address.
func resolver(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", address)
	}}
}
