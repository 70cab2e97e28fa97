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

// Key is the access key that requests to the engine are signed with. Whoever may connect
// to loopback is any user of the machine.
type Key struct {
	ID, Secret string
	Made       bool // for this server, which has to tell it
}

// KeyIn returns the credentials of the environment, so that programs that have the same
// go on after a restart. Without them it makes a pair that ends with this server.
func KeyIn(get func(string) string) Key {
	if id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return Key{ID: id, Secret: secret}
	}
	return Key{ID: rand.Text(), Secret: rand.Text(), Made: true}
}

// Variables are what a program needs, beside the environment, to reach the engine.
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

// Without returns an environment without what would lead a program elsewhere than
// Variables do.
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
