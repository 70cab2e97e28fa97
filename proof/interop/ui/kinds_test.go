//go:build linux

package ui

import (
	"net/url"
	"strings"
	"testing"
	"time"

	lib "github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

// inLock returns a JavaScript expression that is true if the view of a single lock shows all
// the words.
func inLock(words ...string) string {
	return js(words) + `.every((w) => document.getElementById("lock").innerText.includes(w))`
}

func TestPageShowsTermsAndLeadersOfElection(t *testing.T) {
	s, p := newPage(t, "--every", "300ms")
	lead := func(name string) *running {
		return s.start("elect", "scheduler", "LEASEHOLD_OWNER="+name, "--value", name+":8080", "-l", "5s",
			"--", "sh", "-c", "echo $LEASEHOLD_TOKEN; exec sleep 600")
	}
	first := lead("node-a")
	term := first.line()
	p.Wait(says("scheduler", "held", term))
	p.to("?lock=scheduler&as=election")
	p.Wait(inLock("Term", "Leader", "node-a:8080", term))
	second := lead("node-b")
	first.kill()
	next := second.line()
	p.Wait(inLock("node-a:8080", "node-b:8080", term, next, "took over from "+term))

	leader := lab.Must(s.client(lib.Config{}).Acquire(t.Context(), "mover", lib.WithData([]byte("old:80"))))(t)
	p.to("?lock=mover&as=election")
	p.Wait(`document.querySelector(".card")?.innerText.includes("old:80")`)
	lab.OK(t, leader.Renew(t.Context(), lib.WithData([]byte("new:80"))))
	p.Wait(`document.querySelector(".card").innerText.includes("new:80")`)
}

func TestPageShowsWhichLocksShareOneLease(t *testing.T) {
	s, p := newPage(t)
	c := s.client(lib.Config{Owner: "worker", SharedLease: true, Lease: 5 * time.Second})
	for _, key := range []string{"customer/1", "customer/2", "customer/3"} {
		lab.Must(c.Acquire(t.Context(), key))(t)
	}
	p.Wait(says("customer/2", "held", "in a session") + ` && /\d+\.\ds of 5s/.test(` + rowOf("customer/2") + `.innerText)`)
	p.to("?kind=session")
	p.Wait(`document.querySelector(".row").innerText.includes("session of 3 locks")`)
	p.Run(`document.querySelector(".row a").click()`)
	p.Wait(inLock("3 locks under this session", "customer/1", "customer/3"))
}

func TestPageShowsDataOfLockAsTextJSONOrHex(t *testing.T) {
	s, p := newPage(t)
	s.hold("job", "--data", `{"step":"aggregate","of":3}`)
	p.Wait(says("job", "held"))
	p.to("?lock=job")
	shows := func(as, words string) {
		t.Helper()
		p.Run(`[...document.querySelectorAll("[data-as]")].find((b) => b.dataset.as === ` + js(as) + `).click()`)
		p.Wait(`document.getElementById("data").textContent.includes(` + js(words) + `)`)
	}
	shows("text", `{"step":"aggregate","of":3}`)
	shows("JSON", strings.Join([]string{"{", `  "step": "aggregate",`, `  "of": 3`, "}"}, "\n"))
	shows("hex", "7b 22 73 74 65 70")
}

// An owner may choose a name with a character that reverses the direction of the following
// text. A key may contain invisible characters that make it look like another key.
func TestPageShowsInvisibleCharactersAsEscapes(t *testing.T) {
	const key, key2 = "job\u200b\u202egol", `job\u200b\u202egol`
	s, p := newPage(t, "--allow-break")
	locks := s.client(lib.Config{Owner: "ops\u202e\u009b\u00a0b\U000e0041"})
	lab.Must(locks.Acquire(t.Context(), key, lib.WithData([]byte("seen\u2066\u001bc\n"))))(t)
	const unseen = `/(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}]/u`
	isSeen := func(where string) {
		t.Helper()
		found := browser.Eval[string](p.Page, `[document.body.textContent, document.title, ...[...document.querySelectorAll("[title]")].map((e) => e.title)].find((s) => `+unseen+`.test(s)) ?? ""`)
		lab.Want(t, where, found, "")
	}
	p.Wait(`document.getElementById("list").innerText.includes(` + js(key2) + `)`)
	isSeen("the list")
	p.to("?lock=" + url.QueryEscape(key))
	p.Wait(inLock(key2, `ops\u202e\u009b\u00a0b\udb40\udc41`, `seen\u2066\u001bc`))
	isSeen("the lock")
	p.clickBreak()
	isSeen("the dialog")
	p.Type(key2 + "\tstuck\r")
	p.Wait(`document.querySelector(".result.broken")`)
	p.Wait(inLock("stuck"))
	isSeen("the lock that was broken")
}

// A user may choose a whole sentence as an owner name, or as the reason for a break. The page shows
// both in quotes, so that they do not look like messages of leasehold.
func TestPageShowsOwnerNamesAndBreakReasonsInQuotes(t *testing.T) {
	const speech = "nobody: it is free; run leasehold break job"
	s, p := newPage(t, "--every", every)
	locks := s.client(lib.Config{Owner: speech})
	lock := lab.Must(locks.Acquire(t.Context(), "job"))(t)
	p.to("?lock=job")
	p.Wait(inLock(`"` + speech + "/"))
	lab.OK(t, locks.Break(t.Context(), lock.Record(), lib.BreakOptions{Reason: speech}))
	p.Wait(inLock(`was broken by "`+speech+"/", `": "`+speech+`"`))
	lab.Must(s.client(lib.Config{Owner: strings.Repeat("o", 255)}).Acquire(t.Context(), "job"))(t)
	p.Wait(inLock(`"` + strings.Repeat("o", 100) + "…"))
	isLong := `[...document.querySelectorAll("#lock table, .who")].some((e) => e.innerText.includes(` + js(strings.Repeat("o", 201)) + `))`
	lab.Want(t, "page shows a long owner name in full", browser.Eval[bool](p.Page, isLong), false)
}

func TestPageRemovesSecretTokenFromAddress(t *testing.T) {
	_, p := newPage(t)
	lab.WantParts(t, "the printed URL", p.url, "#token=")
	lab.Want(t, "address bar", browser.Eval[string](p.Page, "location.href"), p.origin()+"/")
	lab.Want(t, "cookies", browser.Eval[string](p.Page, "document.cookie"), "")
	elsewhere := browser.Eval[[]string](p.Page, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin + "/"))`)
	lab.Want(t, "what the page requested from other servers", strings.Join(elsewhere, " "), "")
	lab.Want(t, "what the policy blocks", p.Problems(), nil)
}
