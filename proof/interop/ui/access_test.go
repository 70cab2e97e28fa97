//go:build linux

package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

func TestTokenIsRemovedFromAddressBarAndNotStoredInCookie(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui()
	if !strings.Contains(p.url, "#token=") {
		t.Errorf("printed: %s", p.url)
	}
	if at := browser.Eval[string](p.Page, "location.href"); at != p.origin()+"/" {
		t.Errorf("the address bar has %s", at)
	}
	if cookies := browser.Eval[string](p.Page, "document.cookie"); cookies != "" {
		t.Errorf("there is a cookie: %q", cookies)
	}
	elsewhere := browser.Eval[[]string](p.Page, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin + "/"))`)
	if len(elsewhere) > 0 {
		t.Errorf("asked others for %q", elsewhere)
	}
	if complaints := p.Problems(); len(complaints) > 0 {
		t.Errorf("the policy blocks %q", complaints)
	}
}

func TestRequestWithWrongTokenHostOrOriginIsRefused(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui("--allow-break")
	h := s.hold("job")
	p.Wait(says("job", "held", h.token))
	u := lab.Must(url.Parse(p.url))(t)
	shows := func(tab *browser.Page, at, words string) {
		t.Helper()
		tab.Open(at)
		tab.Wait("document.body.innerText.includes(" + js(words) + ")")
	}
	stranger := chromium.Page(t)
	shows(stranger, p.origin()+"/", "Open the URL that leasehold ui printed")
	shows(stranger, p.origin()+"/#token=wrong", "Open the URL that leasehold ui printed")
	// The browser uses a foreign host name for this server's address, as after DNS rebinding.
	// leasehold ui must refuse this name even with the right token, because scripts of the
	// name's owner could read the page.
	rebound := "http://" + browser.ForeignName + ":" + u.Port()
	shows(stranger, rebound+"/#"+u.Fragment, "This is not the name of this server")

	// The page from localhost belongs to another site. The page from 127.0.0.1 belongs to the
	// same site, but has another port.
	for _, name := range []string{"localhost", "127.0.0.1"} {
		t.Run("from a page of "+name, func(t *testing.T) {
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, `<form method="post" enctype="text/plain" action="%s/break"><input name='{"key":"job","typed":"job","grant":"g","version":"v","reason":"' value='"}'></form>`, p.origin())
			}))
			defer evil.Close()
			at := strings.Replace(evil.URL, "127.0.0.1", name, 1)
			tab := p.Another()
			tab.Open(at)
			got := browser.Eval[string](tab, `(async () => {
				const target = `+js(p.origin())+`;
				const tried = [];
				for (const how of [{}, {mode: "no-cors"}]) for (const path of ["/events", "/rate", "/break"]) {
					const post = path === "/events" ? {} : {method: "POST", body: "{}", headers: {"Content-Type": how.mode ? "text/plain" : "application/json"}};
					tried.push(await fetch(target + path, {credentials: "include", ...how, ...post}).then((r) => r.type === "opaque" ? "opaque" : String(r.status), () => "refused"));
				}
				tried.push(await new Promise((done) => { const e = new EventSource(target + "/events", {withCredentials: true}); e.onopen = () => done("open"); e.onerror = () => done("refused") }));
				return tried.join();
			})()`)
			if want := "refused,refused,refused,refused,refused,refused,refused"; got != want {
				t.Errorf("a script got %s", got)
			}
			tab.Run(`document.forms[0].submit()`)
			tab.Wait(`document.body.innerText.includes("The request comes from another site")`)
		})
	}
	if out := s.run("get", "job", "--json"); !strings.Contains(out, h.token) || !strings.Contains(out, `"held"`) {
		t.Errorf("the record: %s", out)
	}
}
