//go:build unix

package cli_test

import (
	"encoding/json"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// result is an operation as bench --json prints it.
type result struct {
	Operation, Table           string
	Count, Clients, Throttled  int
	P50Ms, P95Ms, P99Ms, MaxMs float64
	Requests                   float64
	WriteUnits, ReadUnits      float64
	DollarsPerMillion          float64
	WritePrice, ReadPrice      float64
	LeaseMs                    float64
}

func results(t *testing.T, stdout string) map[string]result {
	t.Helper()
	all := map[string]result{}
	for dec := json.NewDecoder(strings.NewReader(stdout)); dec.More(); {
		var r result
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		all[r.Operation] = r
	}
	return all
}

func TestBenchMeasuresEachOperationInEveryLayoutAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range layout.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := layout.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			f := newFaulty(t, table.Spec{Layout: l}, healthy)
			stdout, stderr, code := said(t, f.env, "bench", "-y", "-d", "0.1", "-c", "3", "--json", "--layout", name)
			if code != 0 || !strings.Contains(stderr, `{"note":"it uses at most about `) {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			all := results(t, stdout)
			for _, op := range []string{"acquire", "release", "renewal", "hand-over", "takeover"} {
				r := all[op]
				bill := r.WriteUnits*r.WritePrice + r.ReadUnits*r.ReadPrice
				if r.Count == 0 || r.P50Ms <= 0 || r.P50Ms > r.P95Ms || r.P95Ms > r.P99Ms || r.P99Ms > r.MaxMs || r.Requests < 1 || math.Abs(bill-r.DollarsPerMillion) > 1e-9 || r.Table != "locks" {
					t.Errorf("%+v", r)
				}
			}
			for _, op := range []string{"acquire", "release", "renewal"} { // as docs/cost.md says
				if r := all[op]; r.Requests != 1 || r.WriteUnits != 1 || r.ReadUnits != 0 || r.DollarsPerMillion != 0.625 {
					t.Errorf("%+v", r)
				}
			}
			if r := all["takeover"]; r.Count != 3 || r.P50Ms < r.LeaseMs || r.WriteUnits != 2 || r.ReadUnits == 0 {
				t.Errorf("%+v", r)
			}
			if r := all["hand-over"]; r.Clients != 3 || r.WriteUnits < 2 {
				t.Errorf("%+v", r)
			}
			f.empty()
		})
	}
}

func TestBenchWorksOnALocalStore(t *testing.T) {
	t.Parallel()
	env := append(bare(t.TempDir()), "LEASEHOLD_FILE="+filepath.Join(t.TempDir(), "locks.db"))
	stdout, stderr, code := said(t, env, "bench", "-y", "-d", "0.1", "-c", "2")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 5 || strings.Count(lines[0], "\t") != 8 || !strings.HasPrefix(lines[4], "takeover\t2\t") ||
		!strings.Contains(stderr, "a local store costs nothing") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if stdout, _, _ := said(t, env, "ls", "-a"); stdout != "" {
		t.Errorf("left: %s", stdout)
	}
}

func TestBenchDeletesItsKeysAtCtrlC(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		if op == "UpdateItem" {
			n.Add(1)
		}
	})
	p := start(t, t.TempDir(), f.env, "bench", "-y", "-d", "30")
	eventually(t, "it is busy", func() bool { return n.Load() >= 20 })
	p.signal(syscall.SIGINT)
	p.ends(130)
	f.empty()
}

func TestBenchSaysItsCostAndAsks(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{}, healthy)
	if _, stderr, code := said(t, f.env, "bench"); code != 2 || !strings.Contains(stderr, "bench asks at a terminal, and there is none: use --yes") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	p := onTerminal(t, t.TempDir(), f.env, "bench", "-q", "--write-price", "1", "--read-price", "2")
	p.shows(strings.ReplaceAll(`for about 40s, writes only keys that begin with leasehold-bench/ and deletes them`, " ", `\s+`)) // wrapped at words
	p.shows(strings.ReplaceAll(`at most about 40000 write units and 80000 read units: \$0.20 at the prices given`, " ", `\s+`))
	p.shows(`Go on\? \[y/N\] `)
	p.types("n\r")
	p.ends(1)
	f.empty()
}

func TestBenchSaysThatAProvisionedTableIsSharedWithOthers(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{ReadUnits: 5, WriteUnits: 7}, healthy)
	_, stderr, code := said(t, f.env, "bench", "-y", "-d", "0.1", "-c", "2")
	if code != 0 || !strings.Contains(stderr, "the table has 7 write units a second: its other users, locks included, will be throttled") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestBenchWritesNothingItCouldNotDelete(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch op {
		case "DeleteItem":
			refuse(w, "AccessDeniedException", "not authorized")
		case "UpdateItem":
			t.Error("bench has written")
		default:
			next.ServeHTTP(w, r)
		}
	})
	if _, stderr, code := said(t, f.env, "bench", "-y"); code != 2 || !strings.Contains(stderr, "allow dynamodb:DeleteItem") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, stderr, code := said(t, newFaulty(t, table.Spec{}, healthy).env, "bench", "-y", "-t", "other"); code != 2 || !strings.Contains(stderr, "table other in http://127.0.0.1:") || !strings.Contains(stderr, "does not exist") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestBenchCountsWhatIsThrottled(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if op == "UpdateItem" && n.Add(1) == 1 {
			refuse(w, "ThrottlingException", "too much")
			return
		}
		next.ServeHTTP(w, r)
	})
	stdout, stderr, code := said(t, f.env, "bench", "-y", "-d", "0.1", "-c", "2", "--json")
	all := results(t, stdout)
	if code != 0 || all["acquire"].Throttled != 1 || all["acquire"].Requests <= 1 {
		t.Errorf("exit code %d: %+v, %s", code, all, stderr)
	}
	f.empty()
}
