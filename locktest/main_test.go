package locktest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// probe is a testing.TB for a test inside a test. It collects errors and log lines.
type probe struct {
	testing.TB // nil, because the methods that Env needs are defined below
	ctx        context.Context
	cancel     context.CancelFunc

	mu       sync.Mutex
	problems []string
	log      strings.Builder
	cleanups []func()
	over     bool
}

// probed runs a test in virtual time, with an Env whose errors go to the probe.
func probed(t *testing.T, test func(t *testing.T, p *probe, env *locktest.Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t.Context())
		test(t, p, locktest.New(p))
	})
}

func newProbe(ctx context.Context) *probe {
	p := &probe{}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

func (p *probe) Helper()                  {}
func (p *probe) Context() context.Context { return p.ctx }
func (p *probe) Cleanup(fn func())        { p.cleanups = append(p.cleanups, fn) }
func (p *probe) Output() io.Writer        { return p }

func (p *probe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		panic("Log in goroutine after the test has completed")
	}
	return p.log.Write(b)
}

func (p *probe) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// fails calls fn in another goroutine. It fails t unless fn calls a method such as Fatal on
// the probe, with a message that contains all parts.
func (p *probe) fails(t *testing.T, fn func(), parts ...string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	<-done
	said := strings.Join(p.problems, "\n")
	p.problems = nil
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("the message does not contain %q: %s", part, said)
		}
	}
}

// endsWell ends the test of the probe, and fails t if the probe has collected errors.
func (p *probe) endsWell(t *testing.T) {
	t.Helper()
	if problems := p.end(); len(problems) > 0 {
		t.Errorf("at the end: %q", problems)
	}
}

// end runs the cleanups of the probe, as package testing does at the end of a test. It
// returns the collected errors.
func (p *probe) end() []string {
	p.cancel()
	for _, fn := range slices.Backward(p.cleanups) {
		fn()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	return p.problems
}
