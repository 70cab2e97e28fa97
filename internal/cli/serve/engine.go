package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Engine serves the engine to programs on this machine. No client keeps a connection for as
// long as it likes by sending slowly, or nothing.
func Engine(engine http.Handler) *http.Server {
	return &http.Server{
		Handler:           refuseOtherNames(engine),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,     // 16 MB at 300 kB/s
		WriteTimeout:      2 * time.Minute, // from the header on: it has the wait for a busy file in it
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// refuseOtherNames refuses requests to a name that is not this machine's own. A site
// whose DNS points its name at this machine would pass for the engine in a browser.
func refuseOtherNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnName(r.Host) {
			http.Error(w, "This server is for programs on its own machine: use 127.0.0.1 or localhost in the URL.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnName reports whether a Host can only be this machine: an address of loopback,
// or a name that stands for it. HTTP/1.0 clients may send none.
func isOwnName(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	switch host {
	case "", "localhost", "host.docker.internal": // the last is what Docker's containers call this machine
		return true
	}
	return strings.HasSuffix(host, ".localhost")
}
