//go:build linux

package ui

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

// screenshots is the folder to which "make screenshots" writes an image of each view.
var screenshots = flag.String("screenshots", "", "write a screenshot of each view to this `folder`")

func TestLeaseTextFitsOrdinaryScreen(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui()
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
	for _, words := range cut {
		t.Errorf("%q is cut", words)
	}
}

// night returns a scene whose page shows every kind of element.
func night(t *testing.T) *scene {
	s := newScene(t, "native")
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

func TestViewsFitTheScreenAndLogNoErrors(t *testing.T) {
	s := night(t)
	p := s.ui("--allow-break", "--every", "300ms")
	p.Wait(says("scheduler", "held"))
	first := s.hold("import/9", append([]string{"LEASEHOLD_OWNER=importer-9"}, long...)...)
	next := s.wait("import/9", append([]string{"LEASEHOLD_OWNER=importer-spare"}, long...)...)
	p.to("?lock=import/9")
	p.Wait(`document.querySelectorAll(".beat").length > 3`)
	first.kill()
	next.line()
	dead := s.hold("queue/mail", append([]string{"LEASEHOLD_OWNER=mailer-2"}, short...)...)
	dead.kill()
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
	if complaints := p.Problems(); len(complaints) > 0 {
		t.Errorf("the page complains: %q", complaints)
	}
}
