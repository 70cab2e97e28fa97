//go:build linux

package ui

import (
	"testing"

	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

func TestLocksOfAllLayoutsAndOfALocalStoreAreShown(t *testing.T) {
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) { showsALock(t, newScene(t, name)) })
	}
	t.Run("local store", func(t *testing.T) { showsALock(t, newFileScene(t)) })
}

func showsALock(t *testing.T, s *scene) {
	p := s.ui()
	h := s.hold("job")
	p.to("?q=job")
	row := `document.querySelector(".row")`
	p.Wait(row + `.innerText.includes("job") && ` + row + `.innerText.includes(` + js(h.token) + `) && ` + row + `.querySelector(".c-state").textContent === "held"`)
	p.Wait(`/\d+\.\ds of/.test(` + row + `.querySelector(".words").textContent)`)
	if browser.Eval[string](p.Page, `getComputedStyle(document.querySelector(".c-layout")).display`) != "none" {
		t.Error("there is a column of layouts, and all have the same")
	}
	h.interrupt()
	p.Wait(`!` + row + ` || ` + row + `.querySelector(".c-state").textContent === "released"`)
}
