//go:build linux

package ui

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	lib "github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/browser"
)

// client returns a leasehold client that runs in the test's own process, and uses the table
// of the scene. The client is closed when the test ends.
func (s *scene) client(cfg lib.Config) *lib.Client {
	s.t.Helper()
	var endpoint string
	for _, v := range s.env {
		if url, ok := strings.CutPrefix(v, "AWS_ENDPOINT_URL_DYNAMODB="); ok {
			endpoint = url
		}
	}
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint), Region: "local",
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	cfg.Table, cfg.Logger = "locks", slog.New(slog.DiscardHandler)
	c := lab.Must(lib.New(db, cfg))(s.t)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx) // ignores an error, because the server of the table ends together with the scene
	})
	return c
}

// The method "many" acquires n keys for the given lease each, and does not renew them.
func (s *scene) many(n int, lease time.Duration) {
	s.t.Helper()
	c := s.client(lib.Config{Owner: "fleet", Lease: lease})
	var workers sync.WaitGroup
	keys := make(chan int)
	for range 16 {
		workers.Go(func() {
			for i := range keys {
				lock, err := c.Acquire(s.t.Context(), fmt.Sprintf("customer/%05d", i))
				if err == nil {
					_, err = lock.Detach()
				}
				if err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	for i := range n {
		keys <- i
	}
	close(keys)
	workers.Wait()
}

// scrolling is the result of one measurement: the test scrolls a list from its top to its end.
type scrolling struct {
	Median, Worst float64 // median and longest time between two frames, in milliseconds
	Rows          int     // largest number of rows that the page contained at the same time
	Blank         int     // number of frames that showed nothing in the middle of the screen
}

func scroll(p *page) scrolling {
	return browser.Eval[scrolling](p.Page, `(async () => {
		const grid = document.getElementById("grid"), frames = [], steps = 120;
		const frame = () => new Promise((r) => requestAnimationFrame(r));
		grid.scrollTop = 0;
		let last = await frame(), rows = 0, blank = 0;
		for (let i = 1; i <= steps; i++) {
			grid.scrollTop = (grid.scrollHeight - grid.clientHeight) * i / steps;
			const now = await frame();
			frames.push(now - last);
			last = now;
			rows = Math.max(rows, document.querySelectorAll(".row").length);
			if (!document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest(".row")) blank++;
		}
		frames.sort((a, b) => a - b);
		return {Median: frames[steps / 2], Worst: frames[steps - 1], Rows: rows, Blank: blank};
	})()`)
}

// TestPageLoadsAndScrollsTenThousandLocksQuickly measures how soon the page shows the locks, and
// how smoothly it scrolls. Both depend on the load of the machine, so the limits are generous. The
// limit for scrolling also depends on how smoothly a list of a hundred locks scrolls.
func TestPageLoadsAndScrollsTenThousandLocksQuickly(t *testing.T) {
	const n = 10_000
	counts := func(n int) string {
		return `document.getElementById("grid").getAttribute("aria-rowcount") === "` + fmt.Sprint(n+1) + `"`
	}
	s := newScene(t)
	s.many(n, time.Hour)
	p := s.ui("--reads", "2000")
	p.Wait(counts(n)) // wait until the page has read the whole table
	p.to("?prefix=customer/042")
	p.Wait(counts(100))
	few := scroll(p)

	p.Open(p.origin() + "/")
	p.Wait(`document.querySelector(".row")`)
	first := browser.Eval[float64](p.Page, `performance.now()`)
	p.Wait(counts(n))
	all := browser.Eval[float64](p.Page, `performance.now()`)
	many := scroll(p)
	t.Logf("%d locks: first row after %.0f ms, all after %.0f ms; a frame of scrolling took %.0f ms (median), %.0f ms (worst), of 100 locks %.0f ms and %.0f ms; %d rows existed at most",
		n, first, all, many.Median, many.Worst, few.Median, few.Worst, many.Rows)
	if first > 10_000 || all > 20_000 {
		t.Errorf("the first row after %.0f ms, all after %.0f ms", first, all)
	}
	if many.Median > max(5*few.Median, 100) || many.Rows > 100 || many.Blank > 6 {
		t.Errorf("scrolling 10,000 locks: %+v, 100: %+v", many, few)
	}
	p.Wait(`[...document.querySelectorAll(".row a")].some((a) => a.textContent === "customer/09999")`)
	h := s.hold("zebra")
	p.to("?q=zebra")
	p.Wait(says("zebra", "held", h.token))
}

// After a reconnect, the rows of so many locks come in several messages.
func TestReconnectedPageAnnouncesNoDeathAgain(t *testing.T) {
	s := newScene(t)
	s.many(2500, time.Second)
	p := s.ui("--reads", "2000")
	const dead, live = `document.querySelector(".state.dead .count").textContent === "2,500"`, `document.getElementById("live").textContent === "live"`
	pause := func(since string) {
		p.Wait(`(globalThis.` + since + ` ??= performance.now()) && performance.now() - ` + since + ` > 1500`)
	}
	p.Wait(dead)
	pause("died") // the page announces deaths once a second
	p.Run(`const wait = setTimeout; globalThis.setTimeout = (f, ms) => wait(f, ms === 60_000 ? 0 : ms);
		globalThis.hide = (is) => { Object.defineProperty(document, "hidden", { value: is, configurable: true }); document.dispatchEvent(new Event("visibilitychange")) };
		document.getElementById("news").textContent = ""; hide(true)`)
	p.Wait("!(" + live + ")")
	p.Run("hide(false)")
	p.Wait(dead + " && " + live)
	pause("back")
	lab.Want(t, "announcement after the reconnect", browser.Eval[string](p.Page, `document.getElementById("news").textContent`), "")
}
