//go:build unix

package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/table"
)

// credentialsFile writes an AWS credentials file with one access key, and returns the file's path.
func credentialsFile(t *testing.T, dir, name, key string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	text := "[default]\naws_access_key_id = " + key + "\naws_secret_access_key = secret\naws_session_token = token-" + key + "\n"
	lab.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// After the grant, the server refuses the old access key. CMD replaces the credentials file with a
// file that contains a new access key. CMD then runs until a renewal with the new key has been
// applied.
func TestRunReloadsCredentialsAfterAWSRejectsThem(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, next, renewed := credentialsFile(t, dir, "credentials", "OLD"), credentialsFile(t, dir, "next", "NEW"), filepath.Join(dir, "renewed")
			var refused atomic.Bool
			f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
				if refused.Load() && strings.Contains(r.Header.Get("Authorization"), "Credential=OLD/") {
					refuse(w, code, "The security token included in the request is not good any more")
					return
				}
				next.ServeHTTP(w, r)
				if op == "UpdateItem" && refused.Swap(true) {
					_ = os.WriteFile(renewed, nil, 0o600)
				}
			})
			env := append(f.env, "AWS_SHARED_CREDENTIALS_FILE="+file, "AWS_CONFIG_FILE="+filepath.Join(dir, "none"))
			succeeds(t, env, "run", "rot", "-l", "10s", "--", "sh", "-c",
				"mv "+next+" "+file+"; while test ! -e "+renewed+"; do sleep 0.1; done")
		})
	}
}

func TestSignalOrEndOfWaitEndsCommandThatWaitsForCredentials(t *testing.T) {
	t.Parallel()
	type variant struct {
		args []string
		ends func(p *process)
	}
	lab.ParallelVariants(t, map[string]variant{
		"acquire, SIGINT": {[]string{"acquire", "k"}, func(p *process) { p.endsBy(syscall.SIGINT) }},
		"renew, SIGINT":   {[]string{"renew", "-f", "grant"}, func(p *process) { p.endsBy(syscall.SIGINT) }},
		"acquire -w":      {[]string{"acquire", "-w", "3s", "k"}, func(p *process) { p.ends(2) }},
	}, func(t *testing.T, c variant) {
		dir := t.TempDir()
		lab.OK(t, os.WriteFile(filepath.Join(dir, "config"), []byte("[default]\ncredential_process = touch began; exec sleep 20 2>/dev/null\n"), 0o600))
		lab.OK(t, os.WriteFile(filepath.Join(dir, "grant"), []byte(`{"table":"locks","key":"k","owner":"o","token":1,"grant":"g","versions":["v"],`+
			`"leaseMs":60000,"trustedUntil":"2026-11-21T12:00:00Z","region":"eu-west-1"}`), 0o600))
		p := start(t, dir, append(bare(dir), "LEASEHOLD_TABLE=locks", "AWS_REGION=eu-west-1", "AWS_CONFIG_FILE="+filepath.Join(dir, "config")), c.args...)
		eventually(t, "the credentials are loaded", func() bool { return lab.ErrorOf(os.Stat(filepath.Join(dir, "began"))) == nil })
		began := time.Now()
		c.ends(p)
		lab.WantTook(t, "the command ended in", began, 0, 10*time.Second)
	})
}

// throughProxy returns the environment of a command that reaches the server through an HTTP proxy.
// The endpoint URL names no loopback address, because leasehold needs no credentials for a loopback
// address.
func (f *faulty) throughProxy(set ...string) []string {
	env := append(bare(f.t.TempDir()), "LEASEHOLD_TABLE=locks", "AWS_REGION=eu-west-1",
		"AWS_ENDPOINT_URL_DYNAMODB=http://dynamodb.example", "HTTP_PROXY="+f.url)
	return append(env, set...)
}

func TestRunWaitsUntilCredentialSourceAnswers(t *testing.T) {
	t.Parallel()
	const good = `{"AccessKeyId":"a","SecretAccessKey":"b","Token":"c","Expiration":"2199-01-02T03:04:05Z","Code":"Success"}`
	container := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, good) }
	metadata := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		switch {
		case strings.HasSuffix(r.URL.Path, "/api/token"):
			_, _ = io.WriteString(w, "token")
		case strings.HasSuffix(r.URL.Path, "/role"):
			_, _ = io.WriteString(w, good)
		default:
			_, _ = io.WriteString(w, "role")
		}
	}
	for name, c := range map[string]struct {
		source http.HandlerFunc
		set    []string // environment variables; the test appends the URL of the credential source to the last variable
	}{
		"container": {container, []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI="}},
		"metadata":  {metadata, []string{"AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT="}},
	} {
		for late, answer := range map[string]http.HandlerFunc{
			"connection closed": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"unavailable":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		} {
			t.Run(name+" "+late, func(t *testing.T) {
				t.Parallel()
				var ready atomic.Bool
				source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if ready.Load() {
						c.source(w, r)
						return
					}
					answer(w, r)
				}))
				t.Cleanup(source.Close)
				f := newFaulty(t, table.Spec{}, healthy)
				set := slices.Clone(c.set)
				set[len(set)-1] += source.URL
				p := start(t, t.TempDir(), f.throughProxy(set...), "run", "-w", "60s", "k", "--", "true")
				eventually(t, "the wait is reported", func() bool { return strings.Contains(p.stderr.String(), "no credentials for ") })
				ready.Store(true)
				p.ends(0)
			})
		}
	}
}

func TestRunFailsImmediatelyWithoutCredentials(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{}, healthy)
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	t.Cleanup(none.Close)
	lab.ParallelVariants(t, map[string]string{
		"no source":                            "AWS_EC2_METADATA_DISABLED=true",
		"container without credentials":        "AWS_CONTAINER_CREDENTIALS_FULL_URI=" + none.URL,
		"metadata service without credentials": "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + none.URL,
	}, func(t *testing.T, set string) {
		began := time.Now()
		stderr := refuses(t, f.throughProxy("AWS_EC2_METADATA_DISABLED=false", set), 125, "", "run", "-w", "60s", "k", "--", "true")
		lab.WantNoPart(t, "stderr", stderr, "still trying")
		lab.WantTook(t, "run ended after", began, 0, patience)
	})
}

func TestRunReportsUnreachableCredentialSource(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{}, healthy)
	_, stderr, code := said(t, f.throughProxy("AWS_CONTAINER_CREDENTIALS_FULL_URI="+noServer), "run", "-w", "5s", "k", "--", "true")
	// The SDK requests credentials up to three times, with random pauses. So leasehold may print
	// the message "news" during any of these requests, and may exit, with the message "end", before
	// or after the last request. The patterns accept all of these cases.
	const news = `leasehold: no credentials for [3-9]s: still trying: (no request was sent yet|no connection to ` + noServer + `/?: connect: connection refused|what provides them does not answer): check what provides them: `
	const end = `leasehold: acquire k in table locks in http://dynamodb.example: no credentials: what provides them does not answer: `
	if code != 125 || !regexp.MustCompile(`^`+news+`.*\n`+end+`.*\n$`).MatchString(stderr) || strings.Contains(stderr, "region") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
