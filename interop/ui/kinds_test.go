//go:build linux

package ui

import (
	"net/url"
	"strings"
	"testing"
	"time"

	lib "github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/interop/browser"
	"github.com/leasehold-go/leasehold/rwlock"
)

// inLock is an expression that is true if the view of one lock contains the words.
func inLock(words ...string) string {
	return js(words) + `.every((w) => document.getElementById("lock").innerText.includes(w))`
}

func TestASemaphoreIsShownWithItsPermits(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui()
	first, second := s.hold("gpu", "-p", "3", "--owner", "render-1"), s.hold("gpu", "-p", "3", "--owner", "render-2")
	p.Wait(says("gpu", "semaphore: 2 of 3 taken"))
	p.to("?lock=gpu")
	p.Wait(inLock("2 of 3 permits are taken", "render-1", "render-2", "free"))
	first.interrupt()
	p.Wait(inLock("1 of 3 permits are taken", "render-2"))
	p.Run(`document.querySelector(".slot.held a").click()`)
	p.Wait(inLock("of the semaphore gpu", second.token))
}

func TestAnElectionIsShownWithItsTermsAndLeaders(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui("--every", "300ms")
	lead := func(name string) *running {
		return s.start("elect", "scheduler", "--owner", name, "--value", name+":8080", "-l", "5s",
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
}

func TestAReadWriteLockIsShownWithItsReadersAndTheWriterThatWaits(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui()
	acquire := func(fn func() (*lib.Lock, error)) *lib.Lock {
		lock, err := fn()
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	index := func(owner string) *rwlock.RWLock {
		rw, err := rwlock.New(s.client(lib.Config{Owner: owner}), "index")
		if err != nil {
			t.Fatal(err)
		}
		return rw
	}
	reads, writes := index("reader"), index("writer")
	var readers []*lib.Lock
	for range 2 {
		readers = append(readers, acquire(func() (*lib.Lock, error) { return reads.AcquireRead(t.Context()) }))
	}
	p.Wait(says("index", "2 readers"))
	written := make(chan *lib.Lock, 1)
	go func() {
		lock, err := writes.AcquireWrite(t.Context())
		if err != nil {
			t.Error(err)
		}
		written <- lock
	}()
	p.Wait(says("index", "2 readers, a writer waits"))
	p.to("?lock=index")
	p.Wait(`document.querySelectorAll(".card").length === 2 && ` + inLock("waits to write: no new reader is let in"))
	for _, r := range readers {
		if err := r.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	writer := <-written
	p.Wait(`document.querySelectorAll(".card").length === 1 && ` + inLock("writer", "(reader)"))
	if err := writer.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Wait(inLock("Nobody."))
}

func TestASessionIsShownWithTheLocksUnderIt(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui()
	c := s.client(lib.Config{Owner: "worker", SharedLease: true, Lease: 5 * time.Second})
	for _, key := range []string{"customer/1", "customer/2", "customer/3"} {
		if _, err := c.Acquire(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	p.Wait(says("customer/2", "held", "in a session") + ` && /\d+\.\ds of 5s/.test(` + rowOf("customer/2") + `.innerText)`)
	p.to("?kind=session")
	p.Wait(`document.querySelector(".row").innerText.includes("session of 3 locks")`)
	p.Run(`document.querySelector(".row a").click()`)
	p.Wait(inLock("3 locks under this session", "customer/1", "customer/3"))
}

func TestDataIsShownAsTextJSONOrHex(t *testing.T) {
	s := newScene(t, "native")
	p := s.ui()
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

// An owner's name can turn the direction of the text behind it, and a key can look like
// another's.
func TestNothingThatOthersWroteTurnsTextOrIsUnseenOnThePage(t *testing.T) {
	const key, key2 = "job\u200b\u202egol", `job\u200b\u202egol`
	s := newScene(t, "native")
	p := s.ui("--allow-break")
	locks := s.client(lib.Config{Owner: "ops\u202e\u009b\u00a0b\U000e0041"})
	_, err := locks.Acquire(t.Context(), key, lib.WithData([]byte("seen\u2066\u001bc\n")))
	if err != nil {
		t.Fatal(err)
	}
	const unseen = `/(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}]/u`
	isSeen := func(where string) {
		t.Helper()
		found := browser.Eval[string](p.Page, `[document.body.textContent, document.title, ...[...document.querySelectorAll("[title]")].map((e) => e.title)].find((s) => `+unseen+`.test(s)) ?? ""`)
		if found != "" {
			t.Errorf("%s has %q", where, found)
		}
	}
	p.Wait(`document.getElementById("list").innerText.includes(` + js(key2) + `)`)
	isSeen("the list")
	p.to("?lock=" + url.QueryEscape(key))
	p.Wait(inLock(key2, `ops\u202e\u009b\u00a0b\udb40\udc41`, `seen\u2066\u001bc`))
	isSeen("the lock")
	p.Run(`document.querySelector("#lock button.danger").click()`)
	p.Wait(`document.getElementById("typed")`)
	isSeen("the dialog")
	p.Type(key2 + "\tstuck\r")
	p.Wait(`document.querySelector(".result.broken")`)
	p.Wait(inLock("stuck"))
	isSeen("the lock that was broken")
}
