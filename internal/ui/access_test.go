package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	secret = "a-token-of-these-tests"
	here   = "127.0.0.1:4711"
)

// door is a guard with nothing but "inside" behind it.
func door(remote bool) *guard {
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) })
	return &guard{token: secret, cookie: "leasehold-4711", hosts: map[string]bool{"localhost": true}, remote: remote, next: inside}
}

// knock sends a request to the guard, changed by each of how.
func knock(g *guard, method, path string, how ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, "http://"+here+path, strings.NewReader("{}"))
	for _, h := range how {
		h(r)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Result()
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }

func known(r *http.Request) { r.AddCookie(&http.Cookie{Name: "leasehold-4711", Value: secret}) }

// ours is what a page of this server sends.
func ours(r *http.Request) {
	known(r)
	r.Header.Set("Origin", "http://"+here)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

func TestTheTokenBecomesACookieAndLeavesTheAddressBar(t *testing.T) {
	got := knock(door(false), "GET", "/?token="+secret+"&lock=a%2Fb", header("Sec-Fetch-Site", "none"))
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/?lock=a%2Fb" {
		t.Errorf("%d to %q", got.StatusCode, got.Header.Get("Location"))
	}
	cookies := got.Cookies()
	if len(cookies) != 1 || cookies[0].Value != secret || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("cookies: %v", cookies)
	}
}

func TestWhoMayAsk(t *testing.T) {
	evil := header("Origin", "http://evil.example")
	for name, c := range map[string]struct {
		method, path string
		how          []func(*http.Request)
		want         int
	}{
		"a page of this server":               {"GET", "/app.js", []func(*http.Request){known, header("Sec-Fetch-Site", "same-origin")}, 200},
		"its request":                         {"POST", "/rate", []func(*http.Request){ours}, 200},
		"by another name of this machine":     {"GET", "/", []func(*http.Request){known, host("localhost:4711")}, 200},
		"by IPv6":                             {"GET", "/", []func(*http.Request){known, host("[::1]:4711")}, 200},
		"through a tunnel from another port":  {"GET", "/", []func(*http.Request){known, host("localhost:9000")}, 200},
		"no cookie":                           {"GET", "/", nil, 401},
		"no cookie, for the stream":           {"GET", "/events", nil, 401},
		"a wrong cookie":                      {"GET", "/", []func(*http.Request){header("Cookie", "leasehold-4711=wrong")}, 401},
		"the cookie of another port's server": {"GET", "/", []func(*http.Request){header("Cookie", "leasehold-4712="+secret)}, 401},
		"a wrong token":                       {"GET", "/?token=wrong", nil, 403},
		"an empty token":                      {"GET", "/?token=", nil, 403},
		"a wrong token with a cookie":         {"GET", "/?token=wrong", []func(*http.Request){known}, 403},
		"somebody's name for this machine":    {"GET", "/", []func(*http.Request){known, host("evil.example:4711")}, 421},
		"that name with the token":            {"GET", "/?token=" + secret, []func(*http.Request){host("evil.example:4711")}, 421},
		"no name":                             {"GET", "/", []func(*http.Request){known, host("")}, 421},
		"another machine's address":           {"GET", "/", []func(*http.Request){known, host("192.0.2.1:4711")}, 421},
		"another site's page, for the stream": {"GET", "/events", []func(*http.Request){known, header("Sec-Fetch-Site", "cross-site")}, 403},
		"another port's page, for the stream": {"GET", "/events", []func(*http.Request){known, header("Sec-Fetch-Site", "same-site")}, 403},
		"another origin, for the stream":      {"GET", "/events", []func(*http.Request){known, evil}, 403},
		"another site's link":                 {"GET", "/", []func(*http.Request){known, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "document")}, 200},
		"another site's frame":                {"GET", "/", []func(*http.Request){known, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "iframe")}, 403},
		"another site's request":              {"POST", "/break", []func(*http.Request){ours, evil}, 403},
		"another port's request":              {"POST", "/break", []func(*http.Request){ours, header("Origin", "http://127.0.0.1:3000")}, 403},
		"the other scheme":                    {"POST", "/break", []func(*http.Request){ours, header("Origin", "https://"+here)}, 403},
		"a request without an origin":         {"POST", "/break", []func(*http.Request){ours, func(r *http.Request) { r.Header.Del("Origin") }}, 403},
		"a request of a page without one":     {"POST", "/break", []func(*http.Request){ours, header("Origin", "null")}, 403},
		"another site's form":                 {"POST", "/break", []func(*http.Request){known, evil, header("Sec-Fetch-Site", "cross-site"), header("Content-Type", "application/x-www-form-urlencoded")}, 403},
		"a form with our origin":              {"POST", "/break", []func(*http.Request){ours, header("Content-Type", "text/plain")}, 403},
		"a request that only looks like JSON": {"POST", "/break", []func(*http.Request){ours, header("Content-Type", "text/plain; application/json")}, 403},
		"our origin without the cookie":       {"POST", "/break", []func(*http.Request){ours, func(r *http.Request) { r.Header.Del("Cookie") }}, 401},
		"a method that nobody uses":           {"DELETE", "/break", []func(*http.Request){known}, 403},
	} {
		if got := knock(door(false), c.method, c.path, c.how...); got.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, got.StatusCode, c.want)
		}
	}
}

func TestListeningElsewhereLetsInAddressesButNoNames(t *testing.T) {
	if got := knock(door(true), "GET", "/", known, host("192.0.2.1:4711")); got.StatusCode != http.StatusOK {
		t.Errorf("by its address: %d", got.StatusCode)
	}
	if got := knock(door(true), "GET", "/", known, host("evil.example:4711")); got.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("by a name: %d", got.StatusCode)
	}
}

func TestEveryAnswerForbidsWhatThePageDoesNotNeed(t *testing.T) {
	for _, path := range []string{"/", "/?token=wrong", "/?token=" + secret} {
		h := knock(door(false), "GET", path).Header
		if p := h.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") || !strings.Contains(p, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, p)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestTokensAreLongAndDiffer(t *testing.T) {
	if a, b := NewToken(), NewToken(); len(a) < 40 || a == b {
		t.Errorf("%q and %q", a, b)
	}
}
