//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// line is one line of the output of leasehold doctor --json.
type line struct {
	Check, State, What, Do string
	Values                 map[string]any
}

// doctor runs leasehold doctor against the server. It checks the exit code, and that
// leasehold doctor has left no record in the table. It returns the lines of the output. The
// keys of the map are the names of the checks.
func (f *faulty) doctor(code int, args ...string) map[string]line {
	f.t.Helper()
	lines := doctor(f.t, f.env, code, args...)
	f.empty()
	return lines
}

// doctor runs leasehold doctor for a lease of ten minutes. For a lease of 20 s it would warn if
// the machine paused for more than a second.
func doctor(t *testing.T, env []string, code int, args ...string) map[string]line {
	t.Helper()
	stdout, stderr, got := said(t, append(slices.Clip(env), "LEASEHOLD_LEASE=10m"), append([]string{"doctor", "--json"}, args...)...)
	lines := map[string]line{}
	for dec := json.NewDecoder(strings.NewReader(stdout)); dec.More(); {
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		if l.What == "" || lines[l.Check].What != "" || strings.Contains(l.What+l.Do, "\n") {
			t.Errorf("line: %+v", l)
		}
		if (l.State == "warning" || l.State == "fatal") && l.Do == "" && code != 2 && !strings.Contains(l.What, ": ") {
			t.Errorf("no advice: %+v", l)
		}
		lines[l.Check] = l
	}
	if got != code {
		t.Fatalf("exit code %d, not %d: %s%s", got, code, stdout, stderr)
	}
	return lines
}

// expectLine checks the line that leasehold doctor has printed for the given check. The
// line must have the given state and contain each of the given texts.
func expectLine(t *testing.T, lines map[string]line, check, state string, texts ...string) {
	t.Helper()
	l := lines[check]
	lab.WantParts(t, check, l.What+": "+l.Do, texts...)
	lab.Want(t, "state of "+check, l.State, state)
}

func TestDoctorReportsCorrectSettingsAsOk(t *testing.T) {
	t.Parallel()
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lab.Must(layout.Parse(name))(t)
			f := newFaulty(t, table.Spec{Layout: l}, healthy)
			lines := f.doctor(0, "--layout", name)
			for _, check := range strings.Fields("store table rights lock clock credentials") {
				expectLine(t, lines, check, "ok")
			}
			expectLine(t, lines, "round trip", "ok", "p50 ", "p99 ", "a lease of 10m is renewed every ")
			expectLine(t, lines, "store", "ok", "table locks in http://127.0.0.1:", "named by LEASEHOLD_TABLE")
			expectLine(t, lines, "rights", "ok", "all that holding locks needs")
			lab.Want(t, "lines", len(lines), 7)

			// A local store must pass the same checks, except the checks that concern AWS:
			// permissions, clock and credentials. For a local store, leasehold doctor also
			// checks the file system.
			env := append(bare(t.TempDir()), "LEASEHOLD_FILE="+filepath.Join(t.TempDir(), "locks.db"))
			succeeds(t, env, "table", "create", "--layout", name)
			lines = doctor(t, env, 0, "--layout", name)
			for _, check := range []string{"store", "file system", "table", "lock", "round trip"} {
				expectLine(t, lines, check, "ok")
			}
			lab.Want(t, "lines", len(lines), 5)
			lab.WantNoPart(t, "the lines", fmt.Sprint(lines), "dynamodb:", "DynamoDB")
			lab.Want(t, "records left in the table", succeeds(t, env, "ls", "-a", "--layout", name), "")
		})
	}
}

// The result of the function "describes" is a fault that changes each reply to DescribeTable: it
// replaces the first occurrence of oldText with newText.
func describes(oldText, newText string) fault {
	described := func(op string, _ *http.Request) bool { return op == "DescribeTable" }
	return faultIf(described, func(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(recorded.Code)
		_, _ = io.WriteString(w, strings.Replace(recorded.Body.String(), oldText, newText, 1))
	})
}

func TestDoctorReportsEachWrongSetting(t *testing.T) {
	t.Parallel()
	dlm := table.Spec{Layout: layout.DynamoDLM{}}
	dated := func(by time.Duration) fault {
		return func(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			next.ServeHTTP(w, r)
		}
	}
	// A global table with multi-Region strong consistency does not support transactions.
	strong := func(status string) fault {
		described := describes(`"TableStatus"`, `"MultiRegionConsistency":"STRONG","Replicas":[{"RegionName":"us-east-2","ReplicaStatus":"`+status+`"}],`+
			`"GlobalTableWitnesses":[{"RegionName":"us-west-2","WitnessStatus":"ACTIVE"}],"TableStatus"`)
		return func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasPrefix(op, "Transact") {
				refuse(w, "ValidationException", "not supported")
				return
			}
			described(op, w, r, next)
		}
	}
	type says struct{ check, state, text string }
	for _, c := range []struct {
		name  string
		spec  table.Spec
		fault fault
		args  []string
		env   []string
		code  int
		says  []says
	}{
		{name: "a clock that is an hour behind", fault: dated(time.Hour), code: 1,
			says: []says{{"clock", "warning", "behind the server's"}, {"clock", "warning", "synchronise this machine's clock"}}},
		{name: "a clock that is an hour ahead", fault: dated(-time.Hour), code: 1, says: []says{{"clock", "warning", "ahead of the server's"}}},
		{name: "a clock that is 5 s behind, in a wall-clock layout", spec: dlm, fault: dated(5 * time.Second), args: []string{"--layout", "dynamo-dlm"}, code: 1,
			says: []says{{"clock", "fatal", "no two clocks differ by more than 2s"}}},
		{name: "a clock that is wrong by less than MaxSkew", fault: healthy, env: []string{"LEASEHOLD_MAX_SKEW=3s"}, code: 0,
			says: []says{{"clock", "ok", "a LEASEHOLD_MAX_SKEW of "}, {"clock", "ok", " is safe here while the clock stays synchronised"}}},
		{name: "a clock that may be wrong by more than MaxSkew", fault: dated(0), env: []string{"LEASEHOLD_MAX_SKEW=1ms"}, code: 1,
			says: []says{{"clock", "warning", "give a LEASEHOLD_MAX_SKEW of "}}},
		{name: "a clock that is wrong by more than MaxSkew", fault: dated(5 * time.Second), env: []string{"LEASEHOLD_MAX_SKEW=1s"}, code: 1,
			says: []says{{"clock", "fatal", "with this one two clients can hold one lock"}}},
		{name: "a clock that is 5 s behind, in layout native", fault: dated(5 * time.Second), code: 0, says: []says{{"clock", "ok", "behind"}}},
		{name: "writes denied", fault: denies("UpdateItem"), code: 1, says: []says{
			{"rights", "fatal", "denied: dynamodb:UpdateItem (run, elect, acquire"}, {"rights", "fatal", "allow that in the caller's IAM policy"},
			{"lock", "unknown", "dynamodb:UpdateItem is denied"}}},
		{name: "deletes denied", fault: denies("DeleteItem"), code: 1, says: []says{
			{"rights", "fatal", "denied: dynamodb:DeleteItem"}, {"lock", "unknown", "dynamodb:DeleteItem is denied"}}},
		{name: "listing denied", fault: denies("Scan", "Query", "DescribeTable"), code: 0, says: []says{
			{"rights", "ok", "all that holding locks needs; denied, as to a service it may be: dynamodb:Query"},
			{"table", "unknown", "locks do not need it"}, {"lock", "ok", ""}}},
		{name: "DescribeTimeToLive denied", fault: denies("DescribeTimeToLive"), code: 0, says: []says{{"ttl", "unknown", "this was not checked"}, {"lock", "ok", ""}}},
		{name: "no TTL", spec: table.Spec{Layout: layout.Native{TTL: "-"}}, fault: healthy, code: 1, says: []says{{"ttl", "warning", `turn it on for the attribute "expiresAt"`}}},
		{name: "another layout's keys", spec: dlm, fault: healthy, code: 1, says: []says{{"keys", "fatal", "this is a table of layout dynamo-dlm"}}},
		{name: "two Regions", fault: describes(`"TableStatus"`, `"Replicas":[{"RegionName":"us-east-2"}],"TableStatus"`), code: 1,
			says: []says{{"replicas", "warning", "two Regions can grant the same key"}}},
		{name: "two Regions with strong consistency", fault: strong("ACTIVE"), code: 0,
			says: []says{{"table", "ok", "fits layout native"}, {"consistency", "ok", "strong, with us-east-2 (ACTIVE), the witness us-west-2 (ACTIVE)"}, {"rights", "ok", "all that holding locks needs"}}},
		{name: "a replica that is not ready", fault: strong("CREATING"), code: 1,
			says: []says{{"replicas", "warning", "the replica in us-east-2 is CREATING"}, {"consistency", "ok", "strong, with us-east-2 (CREATING)"}}},
		{name: "no such table", fault: healthy, args: []string{"-t", "other"}, code: 2, says: []says{{"table", "fatal", "leasehold table create"}}},
		{name: "rejected credentials", code: 2, says: []says{{"table", "fatal", "the credentials were refused"}},
			fault: refusing("UnrecognizedClientException")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, c.spec, c.fault)
			f.env = append(f.env, c.env...)
			lines := f.doctor(c.code, c.args...)
			for _, s := range c.says {
				expectLine(t, lines, s.check, s.state, s.text)
			}
		})
	}
}

func TestDoctorReusesConnections(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	var from sync.Map
	f := newFaulty(t, table.Spec{}, func(_ string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		requests.Add(1)
		from.Store(r.RemoteAddr, true)
		next.ServeHTTP(w, r)
	})
	f.doctor(0)
	connections := 0
	from.Range(func(any, any) bool { connections++; return true })
	// Allow five connections. On a busy machine, the HTTP transport opens another
	// connection if the connection of the previous request is not yet idle.
	if n := requests.Load(); connections > 5 || n < 100 {
		t.Errorf("%d connections for %d requests", connections, n)
	}
}

func TestDoctorUsesOnlyKeysWithGivenPrefix(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{}, faultIf(func(op string, r *http.Request) bool {
		body := bodyOf(r)
		return !strings.HasPrefix(op, "Describe") && !bytes.Contains(body, []byte(`"svc/`))
	}, refusing("AccessDeniedException")))
	expectLine(t, f.doctor(1), "rights", "fatal", "denied: dynamodb:GetItem")
	expectLine(t, f.doctor(0, "--prefix", "svc/"), "lock", "ok", "acquired svc/leasehold-doctor/")
}

func TestDoctorRetriesThrottledRequests(t *testing.T) {
	t.Parallel()
	var seen sync.Map
	f := newFaulty(t, table.Spec{}, faultIf(func(op string, _ *http.Request) bool {
		_, again := seen.LoadOrStore(op, true)
		return !again
	}, refusing("ProvisionedThroughputExceededException")))
	lines := f.doctor(0)
	expectLine(t, lines, "table", "ok", "fits layout native")
	expectLine(t, lines, "rights", "ok", "all that holding locks needs")
}

func TestDoctorReportsUnreachableServer(t *testing.T) {
	t.Parallel()
	env := append(bare(t.TempDir()), "LEASEHOLD_TABLE=locks", "AWS_ENDPOINT_URL_DYNAMODB="+noServer)
	lines := doctor(t, env, 2)
	expectLine(t, lines, "table", "fatal", "no connection to "+noServer, "check the network, the region and the endpoint")
	lab.Want(t, "lines", len(lines), 2)
}

func TestDoctorReportsServerThatIsNotDynamoDB(t *testing.T) {
	t.Parallel()
	other := lab.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer other.Close()
	go func() {
		for conn, err := other.Accept(); err == nil; conn, err = other.Accept() {
			_, _ = bufio.NewReader(conn).ReadString('}') // read the whole request, because a reply before the end of the request would cause another error
			_, _ = io.WriteString(conn, "500 unrecognized command\r\n")
			_ = conn.Close()
		}
	}()
	endpoints := map[string]string{"other protocol": "http://" + other.Addr().String()}
	for name, body := range map[string]string{"HTML page": "<html></html>", "other JSON": `{"name": "search"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		defer server.Close()
		endpoints[name] = server.URL
	}
	for name, url := range endpoints {
		env := append(bare(t.TempDir()), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1")
		t.Run(name, func(t *testing.T) {
			expectLine(t, doctor(t, env, 2, "--table", "locks", "--endpoint-url", url), "table", "fatal", "the answer is not DynamoDB's: check proxies and the endpoint")
		})
	}
}

func TestDoctorReportsExpiryOfCredentials(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{}, healthy)
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	lab.OK(t, os.WriteFile(program, []byte("#!/bin/sh\n"+
		`echo '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c", "Expiration": "2199-01-02T03:04:05Z"}'`), 0o700))
	config := filepath.Join(dir, "config")
	lab.OK(t, os.WriteFile(config, []byte("[default]\ncredential_process = "+program+"\n"), 0o600))
	env := slices.Clip(f.env)
	type variant struct {
		set  []string
		says string
	}
	lab.Variants(t, map[string]variant{
		"process":       {[]string{"AWS_CONFIG_FILE=" + config}, "from ProcessProvider, good until 2199-01-02T03:04:05.000Z, loaded again before that"},
		"session token": {[]string{"AWS_SHARED_CREDENTIALS_FILE=" + credentialsFile(t, dir, "credentials", "KEY")}, ", temporary, and nothing says until when they are good"},
	}, func(t *testing.T, c variant) {
		f.env = append(env, c.set...)
		expectLine(t, f.doctor(0), "credentials", "ok", c.says)
	})
}

func TestInterruptedDoctorDeletesTestKey(t *testing.T) {
	t.Parallel()
	var held atomic.Bool
	stopped := make(chan struct{})
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := bodyOf(r)
		next.ServeHTTP(w, r)
		if op == "UpdateItem" && bytes.Contains(body, []byte("leasehold-doctor/")) && !bytes.Contains(body, []byte("if_not_exists")) && held.CompareAndSwap(false, true) {
			<-stopped
		}
	})
	p := start(t, t.TempDir(), f.env, "doctor")
	eventually(t, "a renewal", held.Load)
	p.signal(syscall.SIGINT)
	close(stopped)
	p.ends(130)
	lab.WantNoPart(t, "the output", p.stdout.String()+p.stderr.String(), "fatal", "leasehold:")
	f.empty()
}

func TestDoctorReportsLockedStoreFile(t *testing.T) {
	t.Parallel()
	dir, file, _ := busyFile(t)
	lines := doctor(t, append(bare(dir), "LEASEHOLD_FILE="+file), 2)
	expectLine(t, lines, "store", "fatal", " was busy for ", ": another process keeps it locked", "fuser(1) names it")
	p := start(t, dir, append(bare(dir), "LEASEHOLD_FILE="+file), "doctor")
	eventually(t, "the first finding", func() bool { return strings.Contains(p.stdout.String(), "file system") })
	began := time.Now()
	p.endsBy(syscall.SIGINT)
	lab.WantTook(t, "after SIGINT, doctor ended in", began, 0, 8*time.Second) // without the signal, doctor gives the file up after ten seconds
}
