package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy is the Content-Security-Policy of every answer: what comes from this server,
// nothing inline, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// tokenParam is the query parameter with the token in the URL that is printed.
const tokenParam = "token"

// NewToken returns a random access token, fit for a URL.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, crypto/rand since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// guard lets in who has the token, from this server's own pages.
//
// The token of the URL becomes a cookie and leaves the address bar. A cookie goes to
// every port of a host, so its name has the port. It is sent by every page of the same
// site, of other ports too: so Origin must be this very server for whatever changes
// something, and browsers that say where a request is from must say "here".
//
// A name that somebody else's DNS points at this machine makes the browser take their
// page for ours. So Host must be a name that nobody else can give out.
type guard struct {
	token  string
	cookie string
	hosts  map[string]bool // names that Host may have besides addresses
	remote bool            // any address will do, not only those of loopback
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
	case r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has(tokenParam):
		g.exchange(w, r)
	case !g.isFromHere(r):
		http.Error(w, "The request comes from another site.", http.StatusForbidden)
	case !g.hasCookie(r):
		http.Error(w, "Open the URL that leasehold ui printed: it has the access token.", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// exchange makes the token of the URL a cookie, and has the browser ask again without
// it.
func (g *guard) exchange(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if !g.isToken(query.Get(tokenParam)) {
		http.Error(w, "The access token is wrong: open the URL that leasehold ui printed last.", http.StatusForbidden)
		return
	}
	query.Del(tokenParam)
	to := "/"
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	// Not Secure: the server speaks plain HTTP, on loopback unless told otherwise.
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: see above
		Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // G710: to this server's own page, with another query
}

// knows reports whether Host is a name of this server that nobody else can give out.
func (g *guard) knows(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return g.remote || ip.IsLoopback()
	}
	return g.hosts[strings.ToLower(host)]
}

// isFromHere reports whether a request comes from a page of this server, or was typed.
// One that changes something must be JSON of such a page: no form can send that.
func (g *guard) isFromHere(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		// A link on another site may open the page, not read anything.
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

func (g *guard) hasCookie(r *http.Request) bool {
	for _, c := range r.CookiesNamed(g.cookie) {
		if g.isToken(c.Value) {
			return true
		}
	}
	return false
}

// isToken takes as long for a wrong token as for the right one.
func (g *guard) isToken(s string) bool {
	a, b := sha256.Sum256([]byte(s)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
