//go:build unix

package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/table"
)

// troubled starts a server and returns the path of a file, ended, which CMD touches when it
// ends. From then on, for the duration d, the server answers every request with the error
// code.
func troubled(t *testing.T, code string, d time.Duration) (f *faulty, ended string) {
	t.Helper()
	ended = filepath.Join(t.TempDir(), "ended")
	return newFaulty(t, table.Spec{}, when(func(string, *http.Request) bool {
		info, err := os.Stat(ended)
		return err == nil && time.Since(info.ModTime()) < d
	}, refusing(code))), ended
}

func TestRunRetriesReleaseUntilRequestsSucceed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ args, after []string }{
		"mark": {[]string{"-l", "10s", "--once", "v1"}, []string{"get", "k", "--done", "v1"}},
		"key":  {[]string{"-l", "15m"}, []string{"run", "-n", "k", "--", "true"}},
	} {
		for _, trouble := range []string{"ThrottlingException", "ExpiredTokenException"} {
			t.Run(name+", "+trouble, func(t *testing.T) {
				t.Parallel()
				f, ended := troubled(t, trouble, 6*time.Second)
				_, stderr, code := said(t, f.env, append(append([]string{"run", "k"}, tc.args...), "--", "touch", ended)...)
				if code != 0 || !strings.Contains(stderr, "leasehold: CMD has ended: trying to ") {
					t.Errorf("exit code %d: %s", code, stderr)
				}
				if stdout, stderr, code := said(t, f.env, tc.after...); code != 0 {
					t.Errorf("%v: exit code %d: %s%s", tc.after, code, stdout, stderr)
				}
			})
		}
	}
}

func TestRunOnceExitsWith123IfMarkIsPerhapsNotStored(t *testing.T) {
	t.Parallel()
	f, ended := troubled(t, "ThrottlingException", time.Hour)
	_, stderr, code := said(t, f.env, "run", "k", "-l", "3s", "--once", "v1", "--", "touch", ended)
	if code != 123 || !strings.Contains(stderr, "leasehold: k: the mark that this is done may not be stored, so the work may be repeated") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestSignalEndsWaitForRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"mark": {[]string{"--once", "v1"}, 123, "the mark that this is done may not be stored"},
		"key":  {nil, 0, "k could not be released, and will be free when the lease expires, by "},
		"keys": {[]string{"-k", "b"}, 0, "k and b could not be released, and will be free when the lease expires, by "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ended := troubled(t, "ThrottlingException", time.Hour)
			p := start(t, t.TempDir(), f.env, append(append([]string{"run", "k", "-l", "15m"}, tc.args...), "--", "touch", ended)...)
			eventually(t, "it tries to release", func() bool { return strings.Contains(p.stderr.String(), "trying to") })
			began := time.Now()
			p.signal(syscall.SIGINT)
			p.ends(tc.code)
			p.said(tc.says)
			if took := time.Since(began); took > 15*time.Second { // 15 s is much less than the lease of 15 minutes
				t.Errorf("a signal ended the wait after %v", took)
			}
		})
	}
}
