//go:build unix

package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// twoRegions imitates the AWS Regions us-east-1 and us-east-2 behind an HTTPS proxy. Both
// Regions serve one table of one localdynamo engine, like replicas of a global table.
type twoRegions struct {
	env    []string
	isDark [2]atomic.Bool  // true while the Region answers every request with HTTP 503
	scans  [2]atomic.Int32 // number of Scan requests that each Region has passed to the engine
}

func newTwoRegions(t *testing.T, consistency string) *twoRegions {
	t.Helper()
	w := &twoRegions{}
	engine := localdynamo.New()
	t.Cleanup(func() { _ = engine.Close() })
	lab.OK(t, table.Create(t.Context(), engine.Client(), table.Spec{Name: "locks"}))
	names := []string{"us-east-1", "us-east-2"}
	certificate := certificateOf(t, names)
	at := map[string]string{} // maps the host and port of each Region's endpoint to the address of the server that imitates the Region
	for i, name := range names {
		region := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); {
			case w.isDark[i].Load():
				_, _ = io.Copy(io.Discard, r.Body)
				rw.WriteHeader(http.StatusServiceUnavailable)
			case op == "DescribeTable":
				describes(`{"Table":{`, fmt.Sprintf(`{"Table":{"MultiRegionConsistency":%q,"Replicas":[{"RegionName":%q,"ReplicaStatus":"ACTIVE"}],`,
					consistency, names[1-i]))(op, rw, r, engine)
			case op == "Scan":
				w.scans[i].Add(1)
				engine.ServeHTTP(rw, r)
			default:
				engine.ServeHTTP(rw, r)
			}
		}))
		region.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		region.StartTLS()
		t.Cleanup(region.Close)
		at["dynamodb."+name+".amazonaws.com:443"] = region.Listener.Addr().String()
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { join(rw, at[r.Host]) }))
	t.Cleanup(proxy.Close)
	dir := t.TempDir()
	bundle := filepath.Join(dir, "ca.pem")
	lab.OK(t, os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	w.env = append(bare(dir), "HTTPS_PROXY="+proxy.URL, "AWS_CA_BUNDLE="+bundle, "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=y",
		"LEASEHOLD_TABLE=locks", "LEASEHOLD_REGION="+names[0])
	return w
}

// join connects a client of the proxy to the server at the given address, and copies the
// bytes in both directions.
func join(rw http.ResponseWriter, address string) {
	server, err := (&net.Dialer{}).Dial("tcp", address)
	if err != nil {
		rw.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, _, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
}

// certificateOf returns a self-signed TLS certificate for the DynamoDB endpoints of the
// given Regions.
func certificateOf(t *testing.T, regions []string) tls.Certificate {
	t.Helper()
	key := lab.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	for _, name := range regions {
		template.DNSNames = append(template.DNSNames, "dynamodb."+name+".amazonaws.com")
	}
	signed := lab.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

// leasehold starts the command with us-east-1 in LEASEHOLD_REGION and us-east-2 in
// LEASEHOLD_FAILOVER.
func (w *twoRegions) leasehold(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, t.TempDir(), append(slices.Clip(w.env), "LEASEHOLD_FAILOVER=us-east-2"), args...)
}

// The method "holds" starts leasehold run on the key "k" and waits until CMD runs.
func (w *twoRegions) holds(t *testing.T) *process {
	t.Helper()
	p := w.leasehold(t, "run", "-l", "4s", "k", "--", "sh", "-c", "echo holds; exec sleep 300")
	eventually(t, "the start of CMD", func() bool { return strings.Contains(p.stdout.String(), "holds") })
	return p
}

func TestFailoverKeepsLockDuringOutageOfRegion(t *testing.T) {
	t.Parallel()
	type variant struct {
		flags []string
		env   []string
		code  int
	}
	lab.ParallelVariants(t, map[string]variant{
		"with the flag":     {[]string{"--failover", "us-east-2"}, nil, 0},
		"with the variable": {nil, []string{"LEASEHOLD_FAILOVER=us-east-2"}, 0},
		"without failover":  {nil, nil, 123},
	}, func(t *testing.T, c variant) {
		w := newTwoRegions(t, "STRONG")
		dir := t.TempDir()
		args := slices.Concat([]string{"run", "-l", "8s"}, c.flags, []string{"k", "--", "sh", "-c", "echo =$LEASEHOLD_FAILOVER >began; sleep 12"})
		p := start(t, dir, slices.Concat(w.env, c.env), args...)
		began := filepath.Join(dir, "began")
		eventually(t, "the start of CMD", func() bool { b, _ := os.ReadFile(began); return len(b) > 0 })
		w.isDark[0].Store(true)
		p.ends(c.code)
		if b, _ := os.ReadFile(began); c.code == 0 && string(b) != "=us-east-2\n" {
			t.Errorf("CMD has LEASEHOLD_FAILOVER%s", b)
		}
	})
}

func TestFailoverIsRefusedIfTableIsEventuallyConsistent(t *testing.T) {
	t.Parallel()
	w := newTwoRegions(t, "EVENTUAL")
	holder := w.holds(t)
	w.isDark[0].Store(true)
	lab.Want(t, "the lock was kept", holder.wait() == 0, false)
	holder.said("no failover from us-east-1: table locks: it is no global table with multi-Region strong consistency")
}

func TestSuggestedBreakCommandContainsFailoverFlag(t *testing.T) {
	t.Parallel()
	w := newTwoRegions(t, "STRONG")
	w.holds(t)
	p := start(t, t.TempDir(), w.env, "break", "k", "--failover", "us-east-2")
	p.wait()
	p.said("type leasehold break --failover us-east-2 --token")
}

func TestCommandsFailOverIfRegionFails(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "k", "--", "true"},
		{"forget", "k", "--yes"},
		{"table", "rewrite", "--layout", "dynamolock", "--yes"},
		{"demo"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			w := newTwoRegions(t, "STRONG")
			w.leasehold(t, "run", "k", "--", "true").ends(0)
			w.isDark[0].Store(true)
			start(t, t.TempDir(), w.env, append([]string{"--table", "locks", "--failover", "us-east-2"}, args...)...).ends(0)
		})
	}
	t.Run("ui", func(t *testing.T) {
		t.Parallel()
		w := newTwoRegions(t, "STRONG")
		w.isDark[0].Store(true)
		w.leasehold(t, "ui")
		eventually(t, "many listings", func() bool { return w.scans[1].Load() > 3 })
	})
}

func TestTableCreateFailsForNewTableIfFailoverIsConfigured(t *testing.T) {
	t.Parallel()
	w := newTwoRegions(t, "STRONG")
	w.leasehold(t, "table", "create").ends(0) // succeeds, because the table "locks" already exists
	p := w.leasehold(t, "table", "create", "--table", "others")
	p.ends(2)
	p.said("table create makes no table in several Regions: see docs/regions.md, or leave out LEASEHOLD_FAILOVER")
	start(t, t.TempDir(), w.env, "table", "check", "--table", "others").ends(2) // the table "others" was not created
}

func TestListAndGetPrintRegionThatAnswered(t *testing.T) {
	t.Parallel()
	w := newTwoRegions(t, "STRONG")
	w.leasehold(t, "run", "k", "--", "true").ends(0)
	for i, region := range []string{"us-east-1", "us-east-2"} {
		w.isDark[0].Store(i > 0)
		for _, args := range [][]string{{"ls", "-a"}, {"ls", "-a", "--check"}, {"get", "k"}} {
			w.leasehold(t, append(args, "--json")...).ends(0).printed(`"region":"` + region + `"`)
		}
		w.leasehold(t, "ls").ends(0).said("answered by " + region)
	}
	listed := succeeds(t, w.env, "ls", "-a", "--json", "--region", "us-east-2")
	lab.WantNoPart(t, "stdout without --failover", listed, "region")
}

func TestTableCheckFindsRegionWithoutReplica(t *testing.T) {
	t.Parallel()
	w := newTwoRegions(t, "STRONG")
	p := start(t, t.TempDir(), w.env, "table", "check", "--failover", "us-east-2")
	p.wait()
	p.printed("ok\tconsistency\tstrong, with us-east-2 (ACTIVE)\t\n")
	p = start(t, t.TempDir(), w.env, "table", "check", "--failover", "us-west-2")
	p.ends(1)
	p.printed("warning\tfailover\tno active replica in us-west-2, so no request leaves us-east-1\t" +
		"name only Regions with an active replica, or add one there\n")
}

func TestDoctorChecksTableInEachRegion(t *testing.T) {
	t.Parallel()
	w := newTwoRegions(t, "STRONG")
	w.isDark[1].Store(true)
	p := w.leasehold(t, "doctor", "--json")
	p.ends(1)
	p.printed(`"check":"region","state":"ok","what":"us-east-1 serves","values":{"region":"us-east-1"}`,
		`"check":"region","state":"warning","what":"no strongly consistent read in us-east-2`)
	w.isDark[0].Store(true)
	w.leasehold(t, "doctor").ends(2).printed("fatal\ttable\tDescribeTable in us-east-1: ")
}

// terms returns the number of terms in which CMD has run. This is the number of lines in
// the file, because CMD appends one line in each term.
func terms(file string) int {
	b, _ := os.ReadFile(file)
	return strings.Count(string(b), "\n")
}

// After an outage, the record still contains elect's own grant from the previous term. elect waits
// until another holder's grant expires, but it must not wait for its own grant.
func TestElectDoesNotWaitForOwnGrantAfterOutage(t *testing.T) {
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
			f := newFaulty(t, table.Spec{}, faultWhile(&isDown, down))
			dir := t.TempDir()
			began := filepath.Join(dir, "began")
			lease := 4 * time.Second
			if name == "unavailable" {
				lease = 12 * time.Second // elect is elected again within this time, even on a busy machine
			}
			p := start(t, dir, owned(f.env, "me"), "elect", "-l", lease.String(), "self", "--", "sh", "-c", "echo >>began; exec sleep 300")
			eventually(t, "the first term", func() bool { return terms(began) == 1 })
			isDown.Store(true)
			eventually(t, "the end of the term", func() bool { return strings.Contains(p.stderr.String(), "campaigning again") })
			isDown.Store(false)
			back := time.Now()
			eventually(t, "the second term", func() bool { return terms(began) == 2 })
			if took := time.Since(back); name == "unavailable" && took > lease {
				t.Errorf("elected again after %v, want a lease at most", took)
			}
			lab.WantNoPart(t, "stderr", p.stderr.String(), "held by") // else elect waits for its own grant
			p.endsBy(syscall.SIGTERM)
			if t.Failed() {
				t.Logf("stderr: %s", &p.stderr)
			}
		})
	}
}

// While a command waits for a held key, the server rejects all requests for a short time.
// The command must continue to wait.
func TestCommandContinuesToWaitDespiteRejectedRequests(t *testing.T) {
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
				f := newFaulty(t, table.Spec{}, faultWhile(&refuses, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
					refusal(op, w, r, next)
					refused.Add(1)
				}))
				grant := filepath.Join(t.TempDir(), "grant")
				start(t, t.TempDir(), f.env, "acquire", "k", "-l", "60s", "-f", grant).ends(0)
				p := start(t, t.TempDir(), f.env, command, "k", "--", "true")
				eventually(t, "the wait", func() bool { return strings.Contains(p.stderr.String(), "waiting for k") })
				refuses.Store(true)
				eventually(t, "rejected requests", func() bool { return refused.Load() >= 2 || p.cmd.ProcessState != nil })
				refuses.Store(false)
				start(t, t.TempDir(), f.env, "release", "-f", grant).ends(0)
				p.ends(0)
			})
		}
	}
}
