package serve

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
)

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
