//go:build linux

package ui

import (
	"encoding/json"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

// The page reads the table at intervals of length "every". Tests wait for two intervals (polls)
// until the page shows a change. The page reads a change within one interval, but on a busy machine
// it may show the change later.
const (
	every = "5s"
	polls = 2 * 5 * time.Second
)

func TestPageShowsTableChangesWithinTwoPolls(t *testing.T) {
	s, p := newPage(t, "--every", every)
	var holders []*holder
	for _, key := range []string{"deploy/prod", "import/7", "import/8"} {
		h := s.hold(key)
		p.WaitFor(polls, says(key, "held", h.token))
		holders = append(holders, h)
	}
	holders[0].interrupt()
	p.WaitFor(polls, says("deploy/prod", "released"))
	next := s.hold("deploy/prod")
	p.WaitFor(polls, says("deploy/prod", "held", next.token))

	want := map[string]string{}
	for line := range strings.Lines(s.run("ls", "--all", "--json")) {
		var r struct {
			Key   string `json:"key"`
			State string `json:"state"`
			Token json.Number
		}
		lab.OK(t, json.Unmarshal([]byte(line), &r))
		want[r.Key] = r.State + " " + r.Token.String()
	}
	got := browser.Eval[map[string]string](p.Page, `Object.fromEntries([...document.querySelectorAll(".row")].map((r) =>
		[r.querySelector("a").textContent, r.querySelector(".c-state").textContent + " " + r.querySelector(".c-token").textContent]))`)
	lab.Want(t, "the page shows", js(got), js(want))
	display := browser.Eval[string](p.Page, `getComputedStyle(document.querySelector(".c-layout")).display`)
	lab.Want(t, "display of the column of layouts, which are all equal", display, "none")
}

func TestLeaseBarOnPageShrinksUntilRenewal(t *testing.T) {
	s, p := newPage(t)
	s.hold("job", "-l", "10s")
	p.Wait(says("job", "held"))
	p.Run(`globalThis.full = () => Number(/scaleX\(([0-9.e-]+)\)/.exec(` + rowOf("job") + `.querySelector(".bar i").style.transform)[1])`)
	p.Run(`globalThis.seen = []; setInterval(() => seen.push(full()), 20)`)
	p.Wait(`seen.some((v, i) => i > 0 && v > seen[i - 1] + 0.1) && seen.filter((v, i) => i > 0 && v < seen[i - 1]).length > 20`)
}

func TestPageShowsKilledHolderAsDeadAfterLeaseExpires(t *testing.T) {
	s, p := newPage(t, "--every", every)
	began := time.Now()
	h := s.hold("job", short...)
	p.Wait(says("job", "held"))
	h.kill()
	lived := time.Since(began).Seconds() // lifetime of the holder; long on a busy machine, because the page then shows the lock late
	p.WaitFor(2*time.Second+polls, says("job", "dead"))
	p.to("?lock=job")
	p.Wait(`document.querySelector("#lock .pill.dead") && document.querySelector(".died")`)
	stood := browser.Eval[float64](p.Page, `(() => {
		const g = document.querySelector(".grant");
		const [lived, died] = [g.querySelector(".lived"), g.querySelector(".died")].map((r) => Number(r.getAttribute("x")));
		return died - lived;
	})()`)
	if stood <= 0 {
		t.Errorf("the timeline shows the death %v pixels after the grant", stood)
	}
	p.Wait(`(globalThis.from ??= performance.now()) && performance.now() - from > 5000`) // wait for more than two leases
	const held = `Number(/^(\d+)s$/.exec(document.querySelector("[aria-label=Grants] tbody td:nth-child(5)").innerText)[1])`
	if s := browser.Eval[float64](p.Page, held); s > lived+4 {
		t.Errorf("a holder that died after %.1f s is shown as holding for %v s", lived, s)
	}
}

func TestTimelineOfLockShowsTakeoverWithBothTokens(t *testing.T) {
	s, p := newPage(t, "--every", "300ms")
	first := s.hold("job", append([]string{"LEASEHOLD_OWNER=first"}, long...)...)
	p.Wait(says("job", "held", first.token))
	p.to("?lock=job")
	waiter := s.wait("job", append([]string{"LEASEHOLD_OWNER=second"}, long...)...)
	first.kill()
	token := waiter.line()
	p.Wait(`document.querySelector(".arrow.takeover")`)
	p.Wait(js([]string{first.token, token}) + `.every((t) => document.querySelector("svg .grant[data-token='" + t + "']"))`)
	p.Wait(`document.querySelector("svg .grant[data-token='` + first.token + `'] title").textContent.includes(", taken over (held for ")`)
	p.Wait(js([]string{"second", "took it over from first", first.token, token}) +
		`.every((w) => [...document.querySelectorAll("#lock table")].at(-1).innerText.includes(w))`)
}

func TestPageShowsThatLockWasBrokenOnAnotherPage(t *testing.T) {
	s, p := newPage(t, "--allow-break", "--every", every)
	h := s.hold("import/7")
	p.to("?lock=import/7")
	second := p.Another()
	second.Open(p.origin() + "/?lock=import/7")
	second.Wait(`document.querySelector("#lock .pill.held")`)

	p.clickBreak()
	p.Wait(js([]string{h.token, "Token", "Held since", "Last renewal", "Layout"}) +
		`.every((w) => document.querySelector("#dialog dl").innerText.includes(w)) && !document.querySelector("#dialog pre")`)
	p.Type("import/")
	disabled := browser.Eval[bool](p.Page, `document.querySelector("#dialog button[type=submit]").disabled`)
	lab.Want(t, "break button is disabled after half of the key", disabled, true)
	p.Type("7\tstuck since noon\r")
	p.Wait(`document.querySelector(".result.broken")`)
	const told = `document.getElementById("lock").innerText.includes("stuck since noon")`
	second.WaitFor(polls, told+` && document.querySelector("#lock .pill.released")`)
	p.Wait(told)
	select {
	case <-h.process.Ended():
	case <-time.After(patience):
		t.Error("the holder's process did not end")
	}
	me := lab.Must(user.Current())(t)
	lab.WantParts(t, "the record", s.run("get", "import/7", "--json"), `"broken":{"by":"`+me.Username+"@")
	lab.WantParts(t, "the server's stderr", p.server.stderr.String(), "broke the grant of import/7", "stuck since noon")
}

func TestBreakButtonOfStalePageDoesNotBreakLockOfNewHolder(t *testing.T) {
	s, p := newPage(t, "--allow-break")
	first := s.hold("job")
	p.to("?lock=job")
	p.clickBreak()
	first.interrupt()
	second := s.hold("job")
	p.Type("job\r")
	p.Wait(`document.querySelector(".result.changed")?.textContent.includes("Nothing was broken")`)
	p.Wait(`document.getElementById("dialog").innerText.includes(` + js(second.token) + `)`)
	lab.WantParts(t, "the record", s.run("get", "job", "--json"), second.token, `"held"`)
}

func TestPageShowsBreakWithoutReplyAsUnknown(t *testing.T) {
	s, p := newPage(t, "--allow-break")
	s.hold("job")
	p.to("?lock=job")
	p.clickBreak()
	lab.OK(t, p.server.process.Stop())
	p.Type("job\r")
	p.Wait(`document.querySelector(".result").textContent === "Breaking…"`)
	p.server.kill()
	p.Wait(`document.querySelector(".result.unknown")?.textContent.includes("not known")`)
}

func TestPageHasBreakButtonOnlyIfAllowBreakIsSet(t *testing.T) {
	s, p := newPage(t)
	s.hold("job")
	p.to("?lock=job")
	p.Wait(`document.querySelector(".card")`)
	lab.Want(t, "break button is hidden", browser.Eval[bool](p.Page, `document.querySelector("#lock button.danger").hidden`), true)
}

func TestPageReconnectsToRestartedServer(t *testing.T) {
	flags := []string{"--addr", "127.0.0.1:" + freePort(t), "--token-file", "token"}
	s, p := newPage(t, flags...)
	h := s.hold("job")
	p.Wait(says("job", "held", h.token))
	p.Run(rowOf("job") + `.querySelector("a").click()`)
	p.Wait(inLock(h.token))
	p.server.kill()
	p.Wait(`/stale since \d\d:\d\d:\d\d/.test(document.getElementById("banner").textContent) && document.getElementById("live").textContent === "stale"`)
	lab.Want(t, "stale page shows the lock", browser.Eval[bool](p.Page, inLock(h.token)), true)
	view := func(query string) {
		p.Run(`history.pushState(null, "", "/` + query + `"); dispatchEvent(new Event("popstate"))`)
	}
	view("?lock=other")
	p.Wait(inLock("not read yet"))
	state := browser.Eval[bool](p.Page, inLock(h.token)+" || "+inLock("Nobody")+" || "+inLock("no record"))
	lab.Want(t, "stale page shows the state of a lock that it has not received", state, false)
	view("")
	s.start(append([]string{"ui"}, flags...)...).line()
	p.Wait(`document.getElementById("live").textContent === "live" && document.getElementById("banner").hidden`)
	next := s.hold("other")
	p.Wait(says("other", "held", next.token))
}

func TestPageShowsHoldersAsUnknownDuringDynamoDBOutage(t *testing.T) {
	s, p := newPage(t)
	h := s.hold("job", "-l", "6s")
	s.hold("other")
	p.Wait(says("job", "held", h.token))
	p.Wait(says("other", "held"))
	p.Wait(`document.querySelector(".state.held .count").textContent === "2" && document.getElementById("counts").hidden`)
	p.Run(`globalThis.amber = false; new MutationObserver(() => { amber ||= document.querySelector(".row.expiring, .row.dead, .pill.expiring, .pill.dead") !== null })
		.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });`)
	lab.OK(t, s.local.process.Stop())
	const told = `/stale since \d\d:\d\d:\d\d: it does not answer/.test(document.getElementById("banner").textContent) &&
		document.getElementById("live").textContent === "stale"`
	p.Wait(told)
	const unknown = `/not known since \d\d:\d\d:\d\d/`
	p.Wait(unknown + `.test(` + rowOf("job") + `.innerText) && ` + rowOf("job") + `.classList.contains("unknown")`)
	p.Wait(unknown + `.test(document.getElementById("counts").textContent) && [...document.querySelectorAll(".state .count")].every((c) => c.textContent === "")`)
	p.Run(rowOf("job") + `.querySelector("a").click()`)
	p.Wait(unknown + `.test(document.querySelector("#lock .pill").textContent) && ` + unknown + `.test(document.querySelector(".card").innerText)`)
	p.Wait(`(globalThis.from ??= performance.now()) && performance.now() - from > 6000`) // wait until the lease has expired
	lab.Want(t, "page showed a holder as expiring or dead during the outage", browser.Eval[bool](p.Page, "amber"), false)
	lab.OK(t, s.local.process.Continue())
	p.Wait(`document.getElementById("live").textContent === "live" && document.getElementById("banner").hidden`)
}

func TestPageAsksForNewURLIfSecretTokenChanged(t *testing.T) {
	flags := []string{"--addr", "127.0.0.1:" + freePort(t)}
	s, p := newPage(t, flags...)
	p.server.kill()
	p.Wait(`document.getElementById("live").textContent === "stale"`)
	url := s.start(append([]string{"ui"}, flags...)...).line()
	p.Wait(`document.getElementById("banner").textContent.includes("Open the URL that leasehold ui printed")`)
	p.Open(url)
	p.Wait(`document.getElementById("live").textContent === "live"`)
}

func TestPageCanStopAndResumeReadingTable(t *testing.T) {
	s, p := newPage(t)
	p.Wait(`/^[0-9.]+ read units\/s$/.test(document.getElementById("reading").textContent)`)
	const set = `(v) => { const r = document.getElementById("rate"); r.value = v; r.dispatchEvent(new Event("change")) }`
	p.Run(`(` + set + `)("0")`)
	p.Wait(`document.getElementById("banner").textContent.startsWith("Reading is stopped")`)
	h := s.hold("job")
	p.Wait(`document.getElementById("reading").textContent === "0.0 read units/s"`)
	lab.Want(t, "page read the table although reading was stopped", browser.Eval[bool](p.Page, `Boolean(`+rowOf("job")+`)`), false)
	p.Run(`(` + set + `)("100")`)
	p.Wait(says("job", "held", h.token))
}

func TestPageListsDeadHoldersFirstByDefault(t *testing.T) {
	s, p := newPage(t)
	s.hold("a")
	s.hold("b", short...).kill()
	s.hold("c")
	const shown = `[...document.querySelectorAll(".row")].map((r) => r.querySelector("a").textContent).join()`
	p.Wait(says("b", "dead") + ` && ` + shown + ` === "b,a,c"`)
	p.Run(`document.querySelector(".columns [data-sort=key] button").click()`)
	p.Wait(shown + ` === "a,b,c"`)
}
