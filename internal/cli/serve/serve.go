// Package serve opens the listeners of the commands "local", "ui" and "elect --http", and
// chooses their addresses. By default, only programs on this machine can connect. For "ui",
// it also chooses the host name of the web page. For "local", it also determines the
// accepted host names and the access key of the DynamoDB engine. The package does not
// depend on the handlers that answer the requests.
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/ui"
)

// Loopback listens at addr, the value of "local --addr". It refuses an address that other
// machines can reach, because the engine has no TLS.
func Loopback(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, failure.Misusef("--addr %s: use HOST:PORT, such as 127.0.0.1:8000", addr)
	}
	if !store.IsThisMachine(host) {
		return nil, failure.Misusef("--addr %s: the engine is for this machine only: use 127.0.0.1:%s", addr, port)
	}
	return listen(ctx, "--addr", addr)
}

// listen listens at addr, which is the value of the given flag.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	_, port, _ := net.SplitHostPort(addr)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return nil, failure.Misusef("%s %s: the port must be a number from 0 to 65535", flag, addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, failure.Misusef("%s is in use: choose another address with %s, such as 127.0.0.1:0 for any free port", addr, flag)
	}
	if err != nil {
		return nil, failure.Misusef("%s %s: %v", flag, addr, err)
	}
	return listener, nil
}

// Page contains the listeners of the web page that "leasehold ui" serves, and the page's
// address.
type Page struct {
	Listeners []net.Listener
	Name      string // "host:port" with a random host name, which only this server has
	Host      string // "host:port" in the page's URL: Name or, if browsers cannot reach the listener by Name, the listener's address
}

// Close closes the listeners.
func (at *Page) Close() {
	for _, l := range at.Listeners {
		_ = l.Close()
	}
}

// ForPage listens at addr for the page of "leasehold ui". It refuses an address that other machines
// can reach, unless the parameter "anywhere" is true.
func ForPage(ctx context.Context, addr string, anywhere bool) (*Page, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, failure.Misusef("--addr %s: use HOST:PORT, such as 127.0.0.1:8765", addr)
	}
	if !anywhere && !store.IsThisMachine(host) {
		return nil, failure.Misusef("--addr %s: the page is for this machine only: use 127.0.0.1 and a tunnel such as ssh -L, or add --unsafe-listen", addr)
	}
	at, err := listenByName(ctx, addr)
	for tries := 1; err != nil && port == "0" && tries < 10; tries++ {
		at, err = listenByName(ctx, addr) // try another port: the last one was free at the first loopback address but perhaps not at the second
	}
	return at, err
}

// listenByName listens at both loopback addresses, 127.0.0.1 and ::1, because browsers try
// both for a name that ends in .localhost. If leasehold listened at 127.0.0.1 only, another
// user of the machine could listen at ::1, and would receive requests for the page.
func listenByName(ctx context.Context, addr string) (*Page, error) {
	first, err := listen(ctx, "--addr", addr)
	if err != nil {
		return nil, err
	}
	ip, port, _ := net.SplitHostPort(first.Addr().String()) // cannot fail, because a listener has a valid address
	at := &Page{Listeners: []net.Listener{first}, Name: net.JoinHostPort(ui.NewName(), port), Host: first.Addr().String()}
	other := map[string]string{"127.0.0.1": "::1", "::1": "127.0.0.1"}[ip]
	if other == "" {
		return at, nil // no second listener: browsers never connect to this address for a name that ends in .localhost
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

// isAddressHere reports whether a process on this machine can listen at the address ip.
func isAddressHere(ctx context.Context, ip string) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// ForProbes listens at addr, the value of "elect --http", for probes and load balancers. If
// addr has no host, only this machine can connect.
func ForProbes(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return nil, failure.Misusef("--http %s: use HOST:PORT, such as 127.0.0.1:8080, or 0.0.0.0:8080 for probes from elsewhere", addr)
	case host == "":
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return listen(ctx, "--http", addr)
}

// Probes returns the server for the probes of "elect --http". On a loopback address, it rejects
// requests whose Host header is not a name of this machine (see refuseOtherNames). At other
// addresses it accepts every Host header, because load balancers choose its value.
func Probes(answers http.Handler, at net.Listener) *http.Server {
	if tcp, ok := at.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		answers = refuseOtherNames(answers)
	}
	return &http.Server{
		Handler:           answers,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than the usual interval between probes
		MaxHeaderBytes:    8 << 10,
	}
}

// Engine returns the server for the DynamoDB engine of "leasehold local". Its timeouts
// close the connection of a client that sends slowly or not at all.
func Engine(engine http.Handler) *http.Server {
	return &http.Server{
		Handler:           refuseOtherNames(engine),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,     // long enough for a request of 16 MB at 300 kB/s
		WriteTimeout:      2 * time.Minute, // includes the wait until another process unlocks the store's file, because it counts from the request header
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// refuseOtherNames returns a handler that rejects requests with a Host header that is not a
// name of this machine. Otherwise a web site whose DNS name points to 127.0.0.1 could use
// the engine through a user's browser.
func refuseOtherNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwnName(r.Host) {
			http.Error(w, "This server is for programs on its own machine: use 127.0.0.1 or localhost in the URL.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnName reports whether the Host header hostPort can only mean this machine, because it
// is a loopback address or a name for a loopback address. It also returns true for "",
// because HTTP/1.0 clients may send no Host.
func isOwnName(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	// "host.docker.internal" is the name of this machine inside Docker's containers.
	return host == "" || store.IsThisMachine(host) || host == "host.docker.internal" || strings.HasSuffix(host, ".localhost")
}

// Wait receives the error of a server from the channel "served", and returns it. If ctx ends first,
// Wait returns nil, because a signal ends ctx, and that is the normal way to end a command that
// serves.
func Wait(ctx context.Context, served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Key is the access key with which clients must sign requests to the engine of "leasehold
// local". It is needed because every user of the machine can connect to loopback.
type Key struct {
	ID, Secret string
	Made       bool // true if leasehold made the key, and so must show it to the user
}

// KeyIn returns the access key in the environment variables. Clients can use a key from the
// environment even after the server has been restarted. If the variables contain no key, KeyIn
// returns a new random key, which is valid until the server exits.
func KeyIn(get func(string) string) Key {
	if id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return Key{ID: id, Secret: secret}
	}
	return Key{ID: rand.Text(), Secret: rand.Text(), Made: true}
}

// Variables returns the environment variables that a program needs to reach the engine at url. It
// adds a Region only if this process's environment contains none. It adds the access key only if
// leasehold has made the key. The function "get" looks up a variable.
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

// Without removes the variables that would make a program use another server or another key. It
// returns the rest of environ, and does not modify environ.
func (k Key) Without(environ []string) []string {
	misleading := append([]string{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"}, store.AWSVariables...)
	if k.Made { // some SDKs prefer a profile to the variables with the key, so remove profiles too
		misleading = slices.Concat(misleading, []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"})
	}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(misleading, name)
	})
}
