package ui

import (
	"crypto/sha256"
	"crypto/subtle"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy is the Content-Security-Policy of every response. All content comes from this server,
// no script or style is inline, and no other page may show this page in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// guard admits requests that have the token and come from this server's own pages. Open routes need
// no token: they answer every client alike, and reveal nothing about the table.
//
// The page gets the token in the URL's fragment, which browsers do not send. It keeps the token in
// the storage of its origin, which includes the port, and sends it in a header. Browsers would send
// a cookie to every port of the host, and so to other users' servers.
//
// If an attacker's DNS name points at this machine (DNS rebinding), the browser treats the
// attacker's page as a page of this server. So guard rejects a Host header with a name that DNS can
// resolve, unless the field "hosts" contains it.
type guard struct {
	token string
	// Names that the Host header may contain, besides IP addresses and localhost.
	hosts  map[string]bool
	remote bool         // the Host header may contain any IP address, not only a loopback address
	open   http.Handler // handler of the routes that need no token
	next   http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !g.knows(r.Host):
		http.Error(w, "This is not the name of this server: open the URL that leasehold ui printed.", http.StatusMisdirectedRequest)
	case !g.isFromHere(r):
		http.Error(w, "The request comes from another site.", http.StatusForbidden)
	case g.open != nil && isOpen(r):
		g.open.ServeHTTP(w, r)
	case !g.hasToken(r):
		http.Error(w, "Open the URL that leasehold ui printed last: it has the access token.", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// knows reports whether this server accepts the value of a Host header: an IP address, a
// localhost name, or a name in g.hosts. Unless g.remote is set, an address must be loopback.
func (g *guard) knows(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip, err := netip.ParseAddr(host); err == nil {
		return g.remote || ip.IsLoopback()
	}
	// Browsers resolve localhost names without DNS, so DNS rebinding cannot use them. All of them
	// are accepted, because an open page may still use the random name of an earlier server.
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || g.hosts[host]
}

// isFromHere reports whether a request comes from a page of this server, a typed URL, or a link
// that opens the page. A request that changes something must come from a page of this server, with
// a JSON body, which no HTML form can send.
func (g *guard) isFromHere(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		// A link on another site may open the page, but that site cannot read the response.
		navigates := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
		if !navigates || r.Method != http.MethodGet || r.URL.Path != "/" {
			return false
		}
	}
	origin := r.Header.Get("Origin")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return origin == "" || origin == "http://"+r.Host
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return origin == "http://"+r.Host && err == nil && kind == "application/json"
}

func (g *guard) hasToken(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.isToken(token)
}

// isOpen reports whether a request needs no token. Such a request reads a file of the page, or
// requests the server's proof (whoPath).
func isOpen(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if r.URL.Path == "/" || r.URL.Path == whoPath {
		return true
	}
	info, err := fs.Stat(files, "page"+r.URL.Path)
	return err == nil && info.Mode().IsRegular()
}

// isToken reports whether s is the server's token. The comparison takes constant time.
func (g *guard) isToken(s string) bool {
	a, b := sha256.Sum256([]byte(s)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
