package ui

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

const (
	secret = "a-secret-of-these-tests"
	named  = "a-name-of-these-tests.localhost:4711"
	here   = "127.0.0.1:4711"
)

// token is the access token that the guard accepts in these tests.
var token = tokenFor(secret, named)

// door returns a guard in front of a handler that answers "inside".
func door(remote bool) *guard {
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) })
	return &guard{token: token, hosts: map[string]bool{"lock-server": true}, remote: remote, next: inside}
}

// knock sends a request to the guard and returns the response. The given functions change the
// request before it is sent.
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

func bearer(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }

func known(r *http.Request) { bearer(token)(r) }

// ours gives r the token and the headers of a request from the server's own page.
func ours(r *http.Request) {
	known(r)
	r.Header.Set("Origin", "http://"+here)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

// The guard must not accept a token in a cookie, which a browser sends to every port of the
// host. It must not accept a token in a query either, which ends up in histories and logs.
func TestUIGuardAcceptsTokenOnlyInHeader(t *testing.T) {
	for name, how := range map[string]func(*http.Request){
		"a cookie":        header("Cookie", "leasehold-4711="+token+"; token="+token),
		"a query":         func(r *http.Request) { r.URL.RawQuery = "token=" + token },
		"Basic":           func(r *http.Request) { r.SetBasicAuth("", token) },
		"the token alone": header("Authorization", token),

		// Another program may listen on the port of an ended server, and receive that server's
		// token from an open page. Later servers with the same secret must reject the token.
		"next server on this port":     bearer(tokenFor(secret, "the-next.localhost:4711")),
		"same host name, another port": bearer(tokenFor(secret, "a-name-of-these-tests.localhost:4712")),
		"another secret":               bearer(tokenFor("another", named)),
		"a proof":                      bearer(proofFor(secret, strings.Repeat("00", nonceLength), named)),
		"the secret":                   bearer(secret),
		"wrong":                        bearer("wrong"),
		"empty":                        bearer(""),
	} {
		lab.Want(t, name, knock(door(false), "GET", "/events", how).StatusCode, http.StatusUnauthorized)
	}
	if got := knock(door(false), "GET", "/events", known); got.StatusCode != http.StatusOK || len(got.Cookies()) > 0 {
		t.Errorf("the header: %d, cookies %v", got.StatusCode, got.Cookies())
	}
}

// Without the token, a browser may load only the static files of the page.
func TestUIGuardRequiresTokenExceptForPublicFiles(t *testing.T) {
	g := door(false)
	page := lab.Must(fs.Sub(files, "page"))(t)
	g.open = http.FileServerFS(page)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"} {
		for _, path := range []string{"/events", "//events", "/./events", "/page/../events", "/Events", "/events/", "/show", "/rate", "/look", "/break", "/.."} {
			got := knock(g, method, path, header("Origin", "http://"+here), header("Content-Type", "application/json"))
			body, _ := io.ReadAll(got.Body)
			lab.Want(t, method+" "+path, got.StatusCode, http.StatusUnauthorized)
			lab.WantNoPart(t, method+" "+path, body, "inside")
		}
	}
	got := knock(g, "GET", "/app.js")
	body, _ := io.ReadAll(got.Body)
	if want, _ := files.ReadFile("page/app.js"); got.StatusCode != http.StatusOK || string(body) != string(want) {
		t.Errorf("app.js: %d", got.StatusCode)
	}
}

func TestUIGuardRejectsUnknownHostNamesAndOrigins(t *testing.T) {
	evil := header("Origin", "http://evil.example")
	for name, c := range map[string]struct {
		method, path string
		how          []func(*http.Request)
		want         int
	}{
		"a page of this server":                  {"GET", "/app.js", []func(*http.Request){known, header("Sec-Fetch-Site", "same-origin")}, 200},
		"a request of such a page":               {"POST", "/rate", []func(*http.Request){ours}, 200},
		"by the name localhost":                  {"GET", "/", []func(*http.Request){known, host("localhost:4711")}, 200},
		"by its own name":                        {"GET", "/", []func(*http.Request){known, host(named)}, 200},
		"by the name of an earlier server":       {"GET", "/", []func(*http.Request){known, host("b.localhost:4711")}, 200},
		"by a configured name":                   {"GET", "/", []func(*http.Request){known, host("Lock-Server:4711")}, 200},
		"by a name that only ends in localhost":  {"GET", "/", []func(*http.Request){known, host("evillocalhost:4711")}, 421},
		"by a name that only contains localhost": {"GET", "/", []func(*http.Request){known, host("a.localhost.evil.example:4711")}, 421},
		"by IPv6":                                {"GET", "/", []func(*http.Request){known, host("[::1]:4711")}, 200},
		"through a tunnel from another port":     {"GET", "/", []func(*http.Request){known, host("localhost:9000")}, 200},
		"no token":                               {"GET", "/", nil, 401},
		"by an unknown DNS name":                 {"GET", "/", []func(*http.Request){known, host("evil.example:4711")}, 421},
		"by no name":                             {"GET", "/", []func(*http.Request){known, host("")}, 421},
		"by another machine's address":           {"GET", "/", []func(*http.Request){known, host("192.0.2.1:4711")}, 421},
		"another site's page, for the stream":    {"GET", "/events", []func(*http.Request){known, header("Sec-Fetch-Site", "cross-site")}, 403},
		"another port's page, for the stream":    {"GET", "/events", []func(*http.Request){known, header("Sec-Fetch-Site", "same-site")}, 403},
		"another origin, for the stream":         {"GET", "/events", []func(*http.Request){known, evil}, 403},
		"another site's link":                    {"GET", "/", []func(*http.Request){known, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "document")}, 200},
		"another site's frame":                   {"GET", "/", []func(*http.Request){known, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate"), header("Sec-Fetch-Dest", "iframe")}, 403},
		"another site's request":                 {"POST", "/break", []func(*http.Request){ours, evil}, 403},
		"another port's request":                 {"POST", "/break", []func(*http.Request){ours, header("Origin", "http://127.0.0.1:3000")}, 403},
		"the other scheme":                       {"POST", "/break", []func(*http.Request){ours, header("Origin", "https://"+here)}, 403},
		"a request without an origin":            {"POST", "/break", []func(*http.Request){ours, func(r *http.Request) { r.Header.Del("Origin") }}, 403},
		"a request with the origin null":         {"POST", "/break", []func(*http.Request){ours, header("Origin", "null")}, 403},
		"another site's form":                    {"POST", "/break", []func(*http.Request){known, evil, header("Sec-Fetch-Site", "cross-site"), header("Content-Type", "application/x-www-form-urlencoded")}, 403},
		"a form with our origin":                 {"POST", "/break", []func(*http.Request){ours, header("Content-Type", "text/plain")}, 403},
		"a content type that only mentions JSON": {"POST", "/break", []func(*http.Request){ours, header("Content-Type", "text/plain; application/json")}, 403},
		"our origin without the token":           {"POST", "/break", []func(*http.Request){ours, func(r *http.Request) { r.Header.Del("Authorization") }}, 401},
		"an unknown method":                      {"DELETE", "/break", []func(*http.Request){known}, 403},
	} {
		lab.Want(t, name, knock(door(false), c.method, c.path, c.how...).StatusCode, c.want)
	}
}

func TestUIWithRemoteAccessAcceptsAnyIPAddressInHostHeader(t *testing.T) {
	byAddress := knock(door(true), "GET", "/", known, host("192.0.2.1:4711"))
	lab.Want(t, "status by an IP address", byAddress.StatusCode, http.StatusOK)
	byName := knock(door(true), "GET", "/", known, host("evil.example:4711"))
	lab.Want(t, "status by a DNS name", byName.StatusCode, http.StatusMisdirectedRequest)
}

func TestUIResponsesHaveRestrictiveSecurityHeaders(t *testing.T) {
	for _, path := range []string{"/", "/events"} {
		h := knock(door(false), "GET", path).Header
		lab.WantParts(t, path+": policy", h.Get("Content-Security-Policy"), "default-src 'none'", "frame-ancestors 'none'")
		lab.WantNoPart(t, path+": policy", h.Get("Content-Security-Policy"), "unsafe")
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestRandomSecretsAndHostNamesOfUIServersAreLongAndUnique(t *testing.T) {
	if a, b := NewSecret(), NewSecret(); len(a) < 40 || a == b {
		t.Errorf("secrets %q and %q", a, b)
	}
	if a, b := NewName(), NewName(); len(a) < 30 || a == b || !strings.HasSuffix(a, ".localhost") {
		t.Errorf("names %q and %q", a, b)
	}
}

func TestUIServerProvesToPageThatItHasSecret(t *testing.T) {
	onPage(t, func(t *testing.T, w *lab.World, b *bench) {
		ask := func(nonce string) (int, map[string]string) {
			r := httptest.NewRequest(http.MethodGet, "http://b.localhost:4711/who", nil)
			r.URL.RawQuery = "nonce=" + nonce
			answer := httptest.NewRecorder()
			b.server.ServeHTTP(answer, r)
			said := map[string]string{}
			lab.OK(t, json.NewDecoder(answer.Body).Decode(&said))
			return answer.Code, said
		}
		one, two := strings.Repeat("01", nonceLength), strings.Repeat("02", nonceLength)
		if status, said := ask(one); status != http.StatusOK || said["host"] != named || said["proof"] != proofFor(secret, one, named) {
			t.Errorf("%d %v", status, said)
		}
		_, said := ask(two)
		lab.Want(t, "the proof for one nonce is valid for another", said["proof"] == proofFor(secret, one, named), false)
		// The server must accept only a nonce of hexadecimal digits. If a nonce could contain the
		// name of another server, the reply could be a valid proof for that server.
		for _, nonce := range []string{"", "01", one + "01", one[2:] + "zz", one + "%0Aevil.localhost:1"} {
			if status, said := ask(nonce); status != http.StatusBadRequest || said["proof"] != "" {
				t.Errorf("nonce %q: %d %v", nonce, status, said)
			}
		}
	})
}
