//go:build linux

package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// network simulates the network between some workers and a server. Its methods start and end
// network faults.
type network struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// connect returns a network to the server at endpoint. The network is closed when the test
// ends.
func connect(t testing.TB, name, endpoint string) *network {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	// The proxy does not listen on 127.0.0.1, because outgoing connections get their ports on that
	// address. While the proxy is down, a connection could get the proxy's port. The proxy could
	// then not start again.
	address := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	n := &network{t, toxiproxy.NewProxy(server, name, address, strings.TrimPrefix(endpoint, "http://"))}
	if err := n.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.proxy.Stop)
	return n
}

// place returns the location of the tables for workers that use this network.
func (n *network) place() place { return place{Endpoint: "http://" + n.proxy.Listen} }

// toxic is a fault of the network, as toxiproxy defines faults.
type toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream"` // "upstream" for requests, "downstream" for replies
	Attributes map[string]int `json:"attributes"`
}

// add starts a fault of the network, which lasts until clear is called.
func (n *network) add(x toxic) {
	n.t.Helper()
	text, err := json.Marshal(x)
	if err == nil {
		_, err = n.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	}
	if err != nil {
		n.t.Errorf("toxic %+v: %v", x, err)
	}
}

// clear ends all faults that add has begun.
func (n *network) clear() { n.proxy.Toxics.ResetToxics(context.Background()) }

// The method "down" closes all connections and refuses new connections, until "up" is called.
func (n *network) down() { n.proxy.Stop() }

func (n *network) up() {
	n.t.Helper()
	if err := n.proxy.Start(); err != nil {
		n.t.Error(err)
	}
}

// lead makes the network forward all requests to the server at endpoint from now on. It closes
// the connections to the previous server.
func (n *network) lead(endpoint string) {
	n.t.Helper()
	at := strings.TrimPrefix(endpoint, "http://")
	if err := n.proxy.Update(&toxiproxy.Proxy{Listen: n.proxy.Listen, Upstream: at, Enabled: true}); err != nil {
		n.t.Error(err)
	}
}
