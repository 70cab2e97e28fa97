package serve

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// Engine serves the engine to programs on this machine. A client that sends slowly, or
// nothing, cannot keep a connection open.
func Engine(engine http.Handler) *http.Server {
	return &http.Server{
		Handler:           refuseOtherNames(engine),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,     // 16 MB at 300 kB/s
		WriteTimeout:      2 * time.Minute, // counted from the header, so it includes the wait for a busy file
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// refuseOtherNames refuses requests to a name that is not this machine's own. Otherwise a
// site whose DNS name points at this machine could use the engine from a browser.
func refuseOtherNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnName(r.Host) {
			http.Error(w, "This server is for programs on its own machine: use 127.0.0.1 or localhost in the URL.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnName reports whether a Host can only be this machine: an address of loopback, or a
// name for one. HTTP/1.0 clients may send none.
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
	case "", "localhost", "host.docker.internal": // the last is the name of this machine in Docker's containers
		return true
	}
	return strings.HasSuffix(host, ".localhost")
}

// Key is the access key that requests to the engine are signed with. It is needed because
// any user of the machine can connect to loopback.
type Key struct {
	ID, Secret string
	Made       bool // made for this server, which has to show it
}

// KeyIn returns the credentials of the environment, so that programs with the same
// credentials can continue after a restart. Without them it makes a pair that is valid
// until this server ends.
func KeyIn(get func(string) string) Key {
	if id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return Key{ID: id, Secret: secret}
	}
	return Key{ID: rand.Text(), Secret: rand.Text(), Made: true}
}

// Variables returns the variables that a program needs, in addition to the environment, to
// reach the engine.
func (k Key) Variables(get func(string) string, url string) []string {
	set := []string{"AWS_ENDPOINT_URL_DYNAMODB=" + url}
	if get("AWS_REGION") == "" && get("AWS_DEFAULT_REGION") == "" {
		set = append(set, "AWS_REGION="+store.Placeholder, "AWS_DEFAULT_REGION="+store.Placeholder)
	}
	if k.Made {
		set = append(set, "AWS_ACCESS_KEY_ID="+k.ID, "AWS_SECRET_ACCESS_KEY="+k.Secret)
	}
	return set
}

// Without returns an environment without the variables that would lead a program to another
// server.
func (k Key) Without(environ []string) []string {
	misleading := store.AWSVariables
	if k.Made { // some SDKs prefer a profile to the variables
		misleading = slices.Concat(misleading, []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"})
	}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(misleading, name)
	})
}
