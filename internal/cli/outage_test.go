//go:build unix

package cli_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/table"
)

// terms returns the number of lines in the file. CMD appends a line in each term in which
// it runs.
func terms(file string) int {
	b, _ := os.ReadFile(file)
	return strings.Count(string(b), "\n")
}

// After an outage, the record still shows the grant of the process's own previous term. The
// process must not wait for itself as if it were another holder.
func TestElectLeadsAgainAfterOutage(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]fault{
		"no answer": unanswered,
		"server error": func(_ string, w http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusInternalServerError)
		},
		"expired token": refusing("ExpiredTokenException"),
		"access denied": denies("UpdateItem", "GetItem", "BatchGetItem"),
		"unavailable":   unavailable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var isDown atomic.Bool
			f := newFaulty(t, table.Spec{}, while(&isDown, down))
			dir := t.TempDir()
			began := filepath.Join(dir, "began")
			p := start(t, dir, owned(f.env, "me"), "elect", "-l", "4s", "self", "--", "sh", "-c", "echo >>began; exec sleep 300")
			eventually(t, "the first term", func() bool { return terms(began) == 1 })
			isDown.Store(true)
			eventually(t, "the end of the term", func() bool { return strings.Contains(p.stderr.String(), "campaigning again") })
			isDown.Store(false)
			back := time.Now()
			eventually(t, "the second term", func() bool { return terms(began) == 2 })
			if took := time.Since(back); name == "unavailable" && took > 4*time.Second {
				t.Errorf("elected again after %v, want a lease at most", took)
			}
			if strings.Contains(p.stderr.String(), "held by") {
				t.Errorf("it waits for itself: %s", &p.stderr)
			}
			p.endsBy(syscall.SIGTERM)
			if t.Failed() {
				t.Logf("stderr: %s", &p.stderr)
			}
		})
	}
}

// While a process waits for a held key, the server refuses all requests for a short time.
// The process must continue to wait.
func TestWaitContinuesAfterTemporaryRefusal(t *testing.T) {
	t.Parallel()
	for code, refusal := range map[string]fault{
		"ExpiredTokenException": refusing("ExpiredTokenException"), "UnrecognizedClientException": refusing("UnrecognizedClientException"),
		"AccessDeniedException": denies("UpdateItem", "GetItem", "BatchGetItem"),
	} {
		for _, command := range []string{"run", "elect"} {
			t.Run(command+" "+code, func(t *testing.T) {
				t.Parallel()
				var refuses atomic.Bool
				var refused atomic.Int32
				f := newFaulty(t, table.Spec{}, while(&refuses, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
					refusal(op, w, r, next)
					refused.Add(1)
				}))
				grant := filepath.Join(t.TempDir(), "grant")
				start(t, t.TempDir(), f.env, "acquire", "k", "-l", "60s", "-f", grant).ends(0)
				p := start(t, t.TempDir(), f.env, command, "k", "--", "true")
				eventually(t, "the wait", func() bool { return strings.Contains(p.stderr.String(), "waiting for k") })
				refuses.Store(true)
				eventually(t, "refusals", func() bool { return refused.Load() >= 2 || p.cmd.ProcessState != nil })
				refuses.Store(false)
				start(t, t.TempDir(), f.env, "release", "-f", grant).ends(0)
				p.ends(0)
			})
		}
	}
}
