//go:build linux

// Package browser runs Chromium in tests of web pages. Chromium comes from a Debian
// package.
package browser

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// patience is how long a test waits for a condition in a page before it fails.
const patience = time.Minute

// Browser is a running Chromium. Its methods are safe for concurrent use.
type Browser struct {
	ctx  context.Context
	free func()
}

// ForeignName is an attacker's domain name, which the browser resolves to 127.0.0.1.
const ForeignName = "rebound.example"

// Start starts Chromium without a window. It installs Chromium first if necessary.
func Start(ctx context.Context) (*Browser, error) {
	path, err := install.Debian(ctx, "chromium", "chromium", "fonts-dejavu-core")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute),
		// This flag simulates DNS rebinding. In this attack, the attacker changes the DNS entry
		// of a domain so that it points to this machine.
		chromedp.Flag("host-resolver-rules", "MAP "+ForeignName+" 127.0.0.1"))
	if os.Getuid() == 0 { // Chromium's sandbox does not work as root, and the tests open only this project's pages
		options = append(options, chromedp.NoSandbox)
	}
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	first, closeFirst := chromedp.NewContext(allocator)
	b := &Browser{ctx: first, free: func() {
		closeFirst()
		free()
	}}
	if err := chromedp.Do(first); err != nil {
		b.Stop()
		return nil, fmt.Errorf("browser: start %s: %w", path, err)
	}
	return b, nil
}

// Stop stops the browser and waits until it has ended.
func (b *Browser) Stop() {
	_ = chromedp.Cancel(b.ctx) // the error does not matter, because b.free() ends the browser in any case
	b.free()
}

// Shared is one browser that all tests of a package share. The first test that opens a page
// starts the browser.
type Shared struct {
	once    sync.Once
	browser *Browser
	err     error
}

// Stop stops the browser if a test has started it.
func (s *Shared) Stop() {
	if s.browser != nil {
		s.browser.Stop()
	}
}

// Page opens an empty page that shares no cookies with other pages. The page is closed when the
// test ends. If the browser cannot be started, the test fails in CI and is skipped elsewhere.
func (s *Shared) Page(t testing.TB) *Page {
	t.Helper()
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		s.browser, s.err = Start(ctx)
	})
	switch {
	case s.err != nil && os.Getenv("CI") != "":
		t.Fatal(s.err)
	case s.err != nil:
		t.Skip(s.err)
	}
	return open(s.browser.ctx, t, chromedp.WithNewBrowserContext())
}

// Page is one page of the browser. If one of its methods fails, the test fails. Call the
// methods only on the test's goroutine.
type Page struct {
	t        testing.TB
	ctx      context.Context
	end      func()
	mu       sync.Mutex
	problems []string
}

func open(in context.Context, t testing.TB, options ...chromedp.ContextOption) *Page {
	t.Helper()
	p := &Page{t: t}
	p.ctx, p.end = chromedp.NewContext(in, options...)
	t.Cleanup(p.end)
	// The first chromedp call with p.ctx opens the page. When p.ctx is cancelled or its
	// deadline passes, chromedp closes the page. So p.ctx must not have a deadline.
	err := chromedp.Listen(p.ctx, p.hear)
	if err != nil {
		t.Fatal(err)
	}
	p.Size(1280, 800)
	return p
}

// hear receives the browser's events. It records the problems of the page: exceptions,
// logged errors and security violations.
func (p *Page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, fmt.Sprintf("exception: %+v", e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
			p.problems = append(p.problems, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	}
}

// Problems returns the problems that the page has had since the previous call of Problems.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.problems
	p.problems = nil
	return all
}

// Another opens a second page that shares the cookies of p.
func (p *Page) Another() *Page {
	p.t.Helper()
	return open(p.ctx, p.t)
}

// Close closes the page.
func (p *Page) Close() { p.end() }

// Do runs chromedp actions in the page.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Open opens a URL and waits until it is loaded.
func (p *Page) Open(url string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(url))
}

// Type sends key strokes to the page.
func (p *Page) Type(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
}

// Size sets the size of the page.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.Do(chromedp.EmulateViewport(width, height))
}

// Dark sets whether the browser reports to the page that the user prefers dark colours.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// Eval returns the value of a JavaScript expression. If the value is a promise, Eval waits
// for it.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Run executes JavaScript statements, which may use await.
func (p *Page) Run(statements string) {
	p.t.Helper()
	Eval[bool](p, "(async () => {"+statements+"; return true})()")
}

// Wait waits until a JavaScript expression is true.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	p.WaitFor(patience, expression)
}

// newDocument lists parts of error messages. If WaitFor's evaluation returns an error with one of
// these parts, the browser has replaced the document, or is replacing it.
var newDocument = []string{"navigated", "xecution context", "Promise was collected", "context with specified id"}

// WaitFor waits until a JavaScript expression is true. If the browser loads a new document, WaitFor
// evaluates the expression there. If the expression is not true after d, the test fails, and shows
// the text of the page.
func (p *Page) WaitFor(d time.Duration, expression string) {
	p.t.Helper()
	end := time.Now().Add(d)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, d+patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(`(async () => {
			for (const end = performance.now() + %d; performance.now() < end; await new Promise((r) => setTimeout(r, 20))) {
				try { if (%s) return true } catch {}
			}
			return false;
		})()`, time.Until(end).Milliseconds(), expression), chromedp.EvalAwaitPromise))
		cancel()
		switch {
		case ok:
			return
		case err != nil && time.Now().Before(end) && slices.ContainsFunc(newDocument, func(text string) bool { return strings.Contains(err.Error(), text) }):
			continue // the browser has loaded a new document: evaluate the expression there
		case err != nil:
			p.t.Fatalf("wait for %s: %v", expression, err)
		}
		p.t.Fatalf("not within %v: %s\nthe page shows:\n%s\nand complains: %q", d, expression, Eval[string](p, "document.body.innerText"), p.Problems())
	}
}

//go:embed npm/package.json
var manifest []byte

//go:embed npm/package-lock.json
var lockFile []byte

// Axe returns the JavaScript source of the library axe-core, which finds accessibility
// problems in a page. It downloads the library first if necessary.
func Axe(ctx context.Context) (string, error) {
	dir, err := install.Once(ctx, "axe-core-4.14.1", func(ctx context.Context, dir string) error {
		if err := install.Require("npm", "install Node 20 or newer (Debian: apt-get install npm)"); err != nil {
			return err
		}
		if err := install.Files(dir, map[string][]byte{"package.json": manifest, "package-lock.json": lockFile}); err != nil {
			return err
		}
		return install.Run(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	})
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source), err
}
