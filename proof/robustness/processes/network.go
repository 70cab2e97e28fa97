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

// network is the network between some workers and a server.
type network struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// connect makes a network to a server, until the test ends.
func connect(t testing.TB, name, endpoint string) *network {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	// An address of its own: while the proxy is down, no connection from 127.0.0.1
	// gets its port.
	address := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	n := &network{t, toxiproxy.NewProxy(server, name, address, strings.TrimPrefix(endpoint, "http://"))}
	if err := n.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.proxy.Stop)
	return n
}

// place is the server, seen through the network.
func (n *network) place() place { return place{Endpoint: "http://" + n.proxy.Listen} }

// toxic is a fault of toxiproxy.
type toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream"` // upstream: requests; downstream: replies
	Attributes map[string]int `json:"attributes"`
}

// add breaks the network.
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

// clear mends what add has broken.
func (n *network) clear() { n.proxy.Toxics.ResetToxics(context.Background()) }

// down refuses connections and closes the existing ones, until up.
func (n *network) down() { n.proxy.Stop() }

func (n *network) up() {
	n.t.Helper()
	if err := n.proxy.Start(); err != nil {
		n.t.Error(err)
	}
}

// lead leads to another server from now on. Connections to the former are closed.
func (n *network) lead(endpoint string) {
	n.t.Helper()
	at := strings.TrimPrefix(endpoint, "http://")
	if err := n.proxy.Update(&toxiproxy.Proxy{Listen: n.proxy.Listen, Upstream: at, Enabled: true}); err != nil {
		n.t.Error(err)
	}
}
