//go:build unix

package cli_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/table"
)

var answering = regexp.MustCompile(`answering (http://[^ ]+)/leader and /live`)

// probesOf waits until the process has printed the URL at which it answers probes, and
// returns that URL.
func probesOf(t *testing.T, p *process) (url string) {
	t.Helper()
	eventually(t, "the address of the probes", func() bool {
		m := answering.FindStringSubmatch(p.stderr.String())
		if m != nil {
			url = m[1]
		}
		return m != nil
	})
	return url
}

var prober = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// probed sends a request to url and returns the status code and the body of the reply. The
// code is 0 if no reply came.
func probed(t *testing.T, url string) (code int, text string) {
	t.Helper()
	r, err := prober.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	body := lab.Must(io.ReadAll(r.Body))(t)
	return r.StatusCode, string(body)
}

// answers fails the test unless a request to url gets the given status code and a body that
// contains the text "want".
func answers(t *testing.T, url string, code int, want string) {
	t.Helper()
	if got, text := probed(t, url); got != code || !strings.Contains(text, want) {
		t.Errorf("%s: %d %s, want %d with %q", url, got, text, code, want)
	}
}

// The test disconnects the leader from the server. The leader must first fail the probe
// /live, and then the probe /leader. Only then may the next leader pass the probe /leader.
func TestProbesOfDisconnectedLeaderFailBeforeSuccessorLeads(t *testing.T) {
	t.Parallel()
	var cut atomic.Bool
	server := newFaulty(t, table.Spec{}, faultWhile(&cut, unanswered))
	others := httptest.NewServer(server.engine)
	t.Cleanup(others.Close)
	elsewhere := append(server.env, "AWS_ENDPOINT_URL_DYNAMODB="+others.URL)

	dir := t.TempDir()
	// A renewal is overdue when trust in the lock ends in less than 5 s, a third of the lease
	// (-l). Then /live fails, until leasehold stops CMD 0.5 s (-g) before trust ends. So the test
	// has 4.5 s to see the failure.
	first, _, _ := atWork(t, dir, server.env, "elect", "-l", "15s", "-g", "0.5s", "--value", "here", "--http", ":0", "k")
	leader := probesOf(t, first)
	second := start(t, t.TempDir(), elsewhere, "elect", "-l", "15s", "--value", "there", "--http", "127.0.0.1:0", "k", "--", "sh", "-c", works)
	follower := probesOf(t, second)
	eventually(t, "the follower's first read of the record", func() bool {
		code, text := probed(t, follower+"/leader")
		return code == 503 && strings.Contains(text, "value\there\n")
	})
	answers(t, leader+"/leader", 200, "value\there\n")
	answers(t, leader+"/live", 200, "")
	answers(t, follower+"/live", 200, "")

	cut.Store(true)
	unwell := false
	eventually(t, "the successor", func() bool {
		alive, _ := probed(t, leader+"/live")
		leads, _ := probed(t, leader+"/leader")
		unwell = unwell || alive == 503 && leads == 200
		follows, _ := probed(t, follower+"/leader") // this probe must come after the probe of the leader
		return follows == 200
	})
	if code, text := probed(t, leader+"/leader"); code != 503 || strings.Contains(text, "value\there") {
		t.Errorf("while its successor leads, the old leader answers %d %s", code, text)
	}
	lab.Want(t, "the leader failed its liveness probe while its renewals were overdue", unwell, true)
	eventually(t, "the message campaigning again", func() bool { return strings.Contains(first.stderr.String(), "campaigning again") })
	answers(t, leader+"/live", 200, "")
	for range 50 { // the campaign may begin by a wait for the lost term, whose release has had no answer
		answers(t, leader+"/leader", 503, "who leads is not known\n")
	}
	cut.Store(false)
	eventually(t, "the value of the new leader", func() bool {
		_, text := probed(t, leader+"/leader")
		return strings.Contains(text, "value\tthere\n")
	})
	for _, p := range []*process{first, second} {
		p.endsBy(syscall.SIGTERM)
	}
	answers(t, leader+"/live", 0, "") // the process has ended
}

func TestProbesAreAnsweredWithoutRequestToDynamoDB(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	server := newFaulty(t, table.Spec{}, func(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		sent.Add(1)
		next.ServeHTTP(w, r)
	})
	dir := t.TempDir()
	p, _, _ := atWork(t, dir, server.env, "elect", "-l", "1h", "--http", ":0", "k")
	url, before := probesOf(t, p), sent.Load()
	for range 50 {
		answers(t, url+"/leader", 200, "")
		answers(t, url+"/live", 200, "")
	}
	lab.Want(t, "requests for 100 answers", sent.Load()-before, 0)
	p.endsBy(syscall.SIGTERM)
}

var (
	manifestCommand = regexp.MustCompile(`(?m)^ *command: (\["leasehold", "elect", .*\])$`)
	manifestProbe   = regexp.MustCompile(`(?m)^ *(readiness|liveness)Probe:\n *httpGet: \{path: ([^,]+), port: ([0-9]+)\}$`)
)

// The test runs the command from the Kubernetes manifest in docs/kubernetes.md, but with a
// local address and with the test's own CMD.
func TestCommandInKubernetesManifestAnswersProbes(t *testing.T) {
	t.Parallel()
	page := documents(t, "docs/kubernetes.md")["docs/kubernetes.md"]
	var args []string
	command := manifestCommand.FindStringSubmatch(page)
	if command == nil || json.Unmarshal([]byte(command[1]), &args) != nil {
		t.Fatalf("the command is %q", command)
	}
	at := slices.Index(args, "--http") + 1
	host, port, err := net.SplitHostPort(args[at])
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsLoopback() {
		t.Errorf("the kubelet cannot reach %s: %v", args[at], err)
	}
	args[at] = "127.0.0.1:0"
	dir, env := tableEnv(t)
	args = append(args[1:slices.Index(args, "--")+1], "sh", "-c", works)
	p := start(t, dir, env, args...)
	fileNumber(t, filepath.Join(dir, "pid2"))
	waits := start(t, t.TempDir(), env, args...)
	want := map[string][2]int{"readiness": {200, 503}, "liveness": {200, 200}} // expected status codes by probe: first of the leader, then of the process that waits to lead
	probes := manifestProbe.FindAllStringSubmatch(page, -1)
	for _, probe := range probes {
		kind, path := probe[1], probe[2]
		leads, text := probed(t, probesOf(t, p)+path)
		follows, _ := probed(t, probesOf(t, waits)+path)
		if got := [2]int{leads, follows}; got != want[kind] || probe[3] != port {
			t.Errorf("%s at port %s: %v (%s), want %v", kind, probe[3], got, text, want[kind])
		}
	}
	lab.Want(t, "probes", len(probes), len(want))
	for _, p := range []*process{p, waits} {
		p.endsBy(syscall.SIGTERM)
	}
}
