// Package serve provides the listeners of local, ui and elect. They serve only this machine
// unless the user asks for more. The package determines the addresses, the name under which
// browsers find the page, the address for probes, and the names and the key that the engine
// accepts. It knows neither the engine, nor the page, nor the answers to probes.
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/ui"
)

// Loopback listens on this machine only, since the engine has no TLS. addr is the value of
// --addr, here and in the functions below.
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

// listen listens at addr, the value of the given flag.
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

// Page contains the listeners and the address of the page.
type Page struct {
	Listeners []net.Listener
	Name      string // "host:port" with a random host name, which only this server has
	Host      string // "host:port" of the URL: Name, if browsers resolve it to this machine
}

// Close closes the listeners, so that other processes can use the addresses.
func (at *Page) Close() {
	for _, l := range at.Listeners {
		_ = l.Close()
	}
}

// ForPage listens for the page. If anywhere is true, addr may be any address. Otherwise it
// must be an address of this machine only.
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
		at, err = listenByName(ctx, addr) // try again with another port: a port that is free at the first loopback address may be taken at the second
	}
	return at, err
}

// listenByName listens at both loopback addresses, because browsers try both for names that
// end in .localhost. If it left one address free, another user could listen there.
func listenByName(ctx context.Context, addr string) (*Page, error) {
	first, err := listen(ctx, "--addr", addr)
	if err != nil {
		return nil, err
	}
	ip, port, _ := net.SplitHostPort(first.Addr().String()) // cannot fail: it is the address of a listener
	at := &Page{Listeners: []net.Listener{first}, Name: net.JoinHostPort(ui.NewName(), port), Host: first.Addr().String()}
	other := map[string]string{"127.0.0.1": "::1", "::1": "127.0.0.1"}[ip]
	if other == "" {
		return at, nil // one listener is enough: browsers never resolve a name that ends in .localhost to this address
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

// isAddressHere reports whether this machine has the address ip, so that a process can
// listen on it.
func isAddressHere(ctx context.Context, ip string) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// ForProbes listens for probes and load balancers. addr is the value of --http. If addr has
// no host, ForProbes listens on this machine only. To make the probes reachable from
// elsewhere, the user must name an address.
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

// Probes returns a server for probes. On loopback it answers only requests to this
// machine's own names. Otherwise a site whose DNS name points at this machine could read
// the answers through a browser. At other addresses it accepts any name, as load balancers
// choose the name.
func Probes(answers http.Handler, at net.Listener) *http.Server {
	if tcp, ok := at.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		answers = refuseOtherNames(answers)
	}
	return &http.Server{
		Handler:           answers,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than the pause between two probes
		MaxHeaderBytes:    8 << 10,
	}
}

// Engine serves the engine to programs on this machine. A client that sends slowly, or
// nothing, cannot keep a connection open.
func Engine(engine http.Handler) *http.Server {
	return &http.Server{
		Handler:           refuseOtherNames(engine),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,     // enough for 16 MB at 300 kB/s
		WriteTimeout:      2 * time.Minute, // counted from the end of the header, so it includes the wait for a store file that another process uses
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

// isOwnName reports whether a Host header can only mean this machine. It accepts loopback
// addresses and names for them. It also accepts an empty name, as HTTP/1.0 clients may send
// no Host.
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
	case "", "localhost", "host.docker.internal": // "host.docker.internal" is the name of this machine inside Docker's containers
		return true
	}
	return strings.HasSuffix(host, ".localhost")
}

// Key is the access key that requests to the engine are signed with. It is needed because
// any user of the machine can connect to loopback.
type Key struct {
	ID, Secret string
	Made       bool // the key was made for this server, which must show it to the user
}

// KeyIn returns the credentials of the environment, so that programs with the same
// credentials can continue after the server restarts. If the environment has no
// credentials, KeyIn makes a pair that is valid until this server ends.
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
	if k.Made { // also remove profiles, since some SDKs prefer a profile to the key's variables
		misleading = slices.Concat(misleading, []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"})
	}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(misleading, name)
	})
}
