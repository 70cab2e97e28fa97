// Package serve is what local, ui and elect need to serve this machine, and nobody else
// unless that is asked for: where they listen (listen.go), to which names the engine answers
// (engine.go) and to which key (key.go), the name under which browsers find the page
// (page.go), and where probes ask (probes.go). It knows neither the engine nor the page, nor
// what probes are answered.
package serve

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
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
