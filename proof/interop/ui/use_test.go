//go:build linux

package ui

import (
	"context"
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

func TestPageIsUsableWithKeyboardAlone(t *testing.T) {
	s, p := newPage(t)
	for _, key := range []string{"a/1", "b/2", "b/3"} {
		s.hold(key)
	}
	p.Wait(`document.querySelectorAll(".row").length === 3`)
	p.Type("/")
	p.Wait(`document.activeElement.id === "q"`)
	p.Run(`document.activeElement.select()`) // select the "/", which chromedp has typed into the field, so that the next text replaces it
	p.Type("b/")
	p.Wait(`document.activeElement.id === "q" && document.querySelectorAll(".row").length === 2 && location.search === "?q=b%2F"`)
	p.Run(`document.getElementById("grid").focus()`)
	const down, enter, escape = "\u0301", "\r", "\u001b"
	p.Type(down + down)
	p.Wait(`document.getElementById(document.getElementById("grid").getAttribute("aria-activedescendant")).innerText.includes("b/3")`)
	p.Type(enter)
	p.Wait(`document.activeElement.id === "lock-title" && document.activeElement.textContent === "b/3"`)
	p.Type("u")
	p.Wait(`document.getElementById("zone").textContent === "Times: UTC" && location.search.includes("tz=utc")`)
	p.Type(escape)
	p.Wait(`document.activeElement.id === "grid" && document.querySelectorAll(".row").length === 2`)
	p.Type("?")
	p.Wait(`document.getElementById("dialog").open && document.getElementById("dialog").innerText.includes("back to all locks")`)
	p.Type(escape)
	p.Wait(`!document.getElementById("dialog").open`)
}

func TestArrowKeysAndEnterShowDetailsOfLock(t *testing.T) {
	s, p := newPage(t)
	for _, key := range []string{"a/1", "b/2", "b/3"} {
		s.hold(key)
	}
	const down, up, enter, escape = "\u0301", "\u0304", "\r", "\u001b"
	const active = `document.getElementById(document.getElementById("grid").getAttribute("aria-activedescendant"))?.innerText`
	opened := func(key string) {
		t.Helper()
		p.Wait(`document.getElementById("lock-title")?.textContent === ` + js(key) + ` && !document.getElementById("lock").hidden`)
	}
	fresh := func() {
		t.Helper()
		p.to("")
		p.Wait(`document.querySelectorAll(".row").length === 3 && document.activeElement === document.body`)
	}
	fresh()
	p.Type(down + down)
	p.Wait(active + `.includes("b/2")`)
	p.Type(up)
	p.Wait(active + `.includes("a/1")`)
	p.Type(enter)
	opened("a/1")
	fresh()
	p.Type(enter)
	opened("a/1")
	fresh()
	p.Type("/")
	p.Wait(`document.activeElement.id === "q"`)
	p.Run(`document.activeElement.select()`) // select the "/", which chromedp has typed into the field, so that the next text replaces it
	p.Type("b/")
	p.Wait(`document.querySelectorAll(".row").length === 2`)
	p.Type(enter)
	opened("b/2")
	p.Type(escape)
	p.Run(`document.getElementById("q").focus()`)
	p.Type(down)
	p.Wait(`document.activeElement.id === "grid" && ` + active + `.includes("b/3")`)
	p.Type("/")
	p.Wait(`document.activeElement.id === "q"`)
}

func TestCopiedLinkRestoresViewOfPage(t *testing.T) {
	s, p := newPage(t)
	for _, key := range []string{"deploy/prod", "import/7", "import/8"} {
		s.hold(key, "LEASEHOLD_OWNER=runner")
	}
	p.Wait(`document.querySelectorAll(".row").length === 3`)
	p.Run(`const set = (id, v) => { const e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event("input")) };
		set("prefix", "import/"); set("owner", "runner");
		document.querySelector("[data-state=held]").click();
		const key = document.querySelector(".columns [data-sort=key] button"); key.click(); key.click()`)
	shown := `[...document.querySelectorAll(".row")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector("a").textContent).join()`
	p.Wait(shown + ` === "import/8,import/7"`)
	link := browser.Eval[string](p.Page, "location.href")
	other := p.Another()
	other.Open(link)
	other.Wait(shown + ` === "import/8,import/7" && document.getElementById("prefix").value === "import/"`)

	p.Run(`document.querySelector(".row a").click()`)
	p.Wait(`document.querySelector(".grant")`)
	p.Run(`document.querySelector("[data-span='5m']").click()`)
	link = browser.Eval[string](p.Page, "location.href")
	other.Open(link)
	other.Wait(`document.querySelector(".grant") && document.querySelector("[data-span='5m']").ariaPressed === "true"`)
	p.Run(`history.back()`)
	p.Wait(shown + ` === "import/8,import/7"`)
}

// TestPageHasNoSeriousAccessibilityProblem checks every view of the page with axe, a tool for
// accessibility tests. It checks the light and the dark mode.
func TestPageHasNoSeriousAccessibilityProblem(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	axe := lab.Must(browser.Axe(ctx))(t)
	s, p := newPage(t, "--allow-break")
	s.hold("job", "--data", "text")
	s.hold("stuck", short...).kill()
	p.Wait(says("stuck", "dead"))
	for _, view := range []struct{ name, query, prepare, ready string }{
		{"list", "", "", `document.querySelectorAll(".row").length === 2`},
		{"lock", "?lock=job", "", `document.querySelector(".grant")`},
		{"dead", "?lock=stuck", "", `document.querySelector(".died")`},
		{"break", "?lock=job", `document.querySelector("#lock button.danger").click()`, `document.getElementById("typed")`},
		{"help", "", `document.getElementById("help").click()`, `document.querySelector("dialog[open] kbd")`},
	} {
		for _, dark := range []bool{false, true} {
			p.Dark(dark)
			p.to(view.query)
			if view.prepare != "" {
				p.Wait(`!document.querySelector("#lock button.danger")?.hidden`)
				p.Run(view.prepare)
			}
			p.Wait(view.ready)
			browser.Eval[any](p.Page, axe+"; true")
			found := browser.Eval[[]string](p.Page, `axe.run().then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
				.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html + " " + n.any.map((a) => a.message).join()).join(" | ")))`)
			for _, f := range found {
				t.Errorf("%s, dark: %v: %s", view.name, dark, f)
			}
		}
	}
}

// screenshots is the folder to which "make screenshots" writes an image of each view.
var screenshots = flag.String("screenshots", "", "write a screenshot of each view to this `folder`")

func TestPageDoesNotTruncateLeaseColumn(t *testing.T) {
	s, p := newPage(t)
	s.hold("living")
	s.hold("stuck", short...).kill()
	p.Wait(says("stuck", "dead"))
	p.Size(1280, 800)
	cut := browser.Eval[[]string](p.Page, `import("/list.js").then(({ drawBar, notKnown }) => {
		const cut = [];
		const measure = (row) => {
			const cell = row.querySelector(".c-left");
			if (cell.scrollWidth > cell.clientWidth) cut.push(cell.textContent);
		};
		const draw = (row, ms) => {
			drawBar(row.row, row.parts.fillBar, row.parts.words, row.row.until + ms);
			measure(row);
		};
		const dead = `+rowOf("stuck")+`, living = `+rowOf("living")+`;
		for (const s of [145, 3599, 86399, 31535999]) draw(dead, s * 1000);
		living.row.lease = 3599000; // the page shows this changed lease until the next renewal
		for (const s of [-3599, -1, 0]) draw(living, s * 1000);
		living.parts.fillBar.parentElement.hidden = true;
		for (const day of [0, 86400000]) {
			living.parts.words.textContent = notKnown(Date.now() - day);
			measure(living);
		}
		return cut;
	})`)
	lab.Want(t, "texts that do not fit their column", strings.Join(cut, "; "), "")
}

// night returns a scene with locks of several kinds, such as permits of a semaphore.
func night(t *testing.T) *scene {
	s := newScene(t)
	s.hold("billing/nightly-report", "LEASEHOLD_OWNER=batch-3", "--data", `{"step":"aggregate","done":41822,"of":90000}`)
	s.hold("deploy/prod", "LEASEHOLD_OWNER=ci-runner-17", "--data", "release 2026.11.3")
	s.hold("deploy/staging", "LEASEHOLD_OWNER=ci-runner-4")
	for _, key := range []string{"import/7", "import/8", "import/12"} {
		s.hold(key, "LEASEHOLD_OWNER=importer-"+key[7:])
	}
	for _, owner := range []string{"render-a", "render-b"} {
		s.hold("gpu", "-p", "3", "LEASEHOLD_OWNER="+owner)
	}
	s.run("run", "cache/warm-up", "LEASEHOLD_OWNER=web-1", "--", "true")
	s.start("elect", "scheduler", "--value", "10.0.0.7:8080", "LEASEHOLD_OWNER=node-a", "--", "sleep", "600")
	return s
}

func TestEveryViewOfPageFitsScreenAndLogsNoErrors(t *testing.T) {
	s := night(t)
	p := s.ui("--allow-break", "--every", "300ms")
	p.Wait(says("scheduler", "held"))
	first := s.hold("import/9", append([]string{"LEASEHOLD_OWNER=importer-9"}, long...)...)
	next := s.wait("import/9", append([]string{"LEASEHOLD_OWNER=importer-spare"}, long...)...)
	p.to("?lock=import/9")
	p.Wait(`document.querySelectorAll(".beat").length > 3`)
	first.kill()
	next.line()
	s.hold("queue/mail", append([]string{"LEASEHOLD_OWNER=mailer-2"}, short...)...).kill()
	p.Wait(`document.querySelector(".arrow.takeover")`)
	p.to("")
	p.Wait(says("queue/mail", "dead"))
	views := []struct{ name, query, ready string }{
		{"list", "", `document.querySelectorAll(".row").length > 8`},
		{"lock", "?lock=import/9", `document.querySelector(".arrow.takeover")`},
		{"data", "?lock=billing/nightly-report", `document.querySelector("pre").textContent !== ""`},
		{"break", "?lock=deploy/prod", `document.querySelector(".card")`},
	}
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1280, 800}, {"narrow", 390, 844}} {
		p.Size(size.width, size.height)
		for _, v := range views {
			p.to(v.query)
			p.Wait(v.ready)
			if v.name == "break" {
				p.Run(`document.querySelector("button.danger").click()`)
				p.Wait(`document.getElementById("typed")`)
			}
			if wide := browser.Eval[int](p.Page, "document.documentElement.scrollWidth"); wide > int(size.width) {
				t.Errorf("%s, %s: %d pixels wide", v.name, size.name, wide)
			}
			for _, dark := range []bool{false, true} {
				scheme := map[bool]string{false: "light", true: "dark"}[dark]
				p.Dark(dark)
				if *screenshots != "" {
					p.Screenshot(filepath.Join(*screenshots, v.name+"-"+scheme+"-"+size.name+".png"))
				}
			}
		}
	}
	lab.Want(t, "problems of the page", p.Problems(), nil)
}
